"""The problems that a training met, recorded, and replayed through every solver."""
