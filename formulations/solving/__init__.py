"""From a problem and a solver to an answer that carries its evidence: one, a batch, or with and without integers."""
