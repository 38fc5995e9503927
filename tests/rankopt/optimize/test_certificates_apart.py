"""Certificates beside an optimum found apart, by writing out all rankings of tiny problems: none wrong, no fit lost, no
false stop. `python -m benchmarks faults certificates` does thousands."""

import pytest
from problems.enumerated import CASES, MASTERS, Tiny, case_of, check

from rankopt.optimize import METHODS

TRIES = 300


@pytest.mark.study
@pytest.mark.parametrize("part", range(10))
def test_certificates_hold(part):
    for number in range(part, TRIES, 10):
        case = case_of(number)
        wrong, told, proved = check(Tiny.drawn(number, 2))
        assert not wrong, f"{number} {case}: {wrong}"
        assert not told.startswith("lost"), f"{number} {case}: {told}"
        if not case[1].lower().endswith("highs"):  # its masters are not solved, which it does not know
            assert not told.startswith("stalled"), f"{number} {case}: {told} {proved}"


def test_the_tries_meet_every_method_and_master():
    met = [case_of(number) for number in range(TRIES)]
    assert len(set(met)) == TRIES
    for place, names in ((0, METHODS), (1, MASTERS)):
        counted = [sum(case[place] == name for case in met) for name in names]
        assert min(counted) > 0.5 * TRIES / len(names)
    assert {case_of(number) for number in range(len(CASES))} == set(CASES)


def test_a_wrong_certificate_is_found_out(monkeypatch):
    """The check itself: bounds that are too good and objectives that are too small do not pass."""
    from planted.solvers import Boasting

    tiny = Tiny.drawn(next(n for n in range(900) if case_of(n)[:3] == ("bundle", "auto", "convex")), 5)
    made = Tiny.ranker
    monkeypatch.setattr(Tiny, "ranker", lambda self, **options: made(self, **options).set_params(method=Boasting()))
    wrong, _, _ = check(tiny)
    assert "above the optimum" in wrong
