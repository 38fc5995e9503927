"""Both blocks of a factor model, each solved to a gap: ridge systems, bundles side by side, items by planes."""
