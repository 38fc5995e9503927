"""What solvers accept: frozen records of arrays that judge a point and a price vector from their data alone.

RankTwoAssignment ⊂ Assignment ⊂ MinCostFlow ⊂ LinearProgram       GroupedSimplexQP ⊂ QuadraticProgram
and any cvxpy.Problem
"""
