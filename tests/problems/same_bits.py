"""When two trained rankers are the same."""

from dataclasses import fields


def assert_same(one, other):
    """Equal bit for bit: weights, certificate and all of the history but the seconds."""
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.certificate_ == other.certificate_
    assert getattr(one, "best_score_", None) == getattr(other, "best_score_", None)
    for field in fields(one.history_):
        if not field.name.startswith("seconds"):
            assert getattr(one.history_, field.name).tobytes() == getattr(other.history_, field.name).tobytes()
