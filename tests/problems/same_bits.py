"""When two trained rankers are the same."""


def assert_same(one, other):
    """Equal bit for bit: weights, certificate and all of the history but the seconds."""
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.certificate_ == other.certificate_
    assert getattr(one, "best_score_", None) == getattr(other, "best_score_", None)
    assert one.history_.row == other.history_.row
    for name, column in one.history_.columns.items():
        if not name.startswith("seconds"):
            assert column.tobytes() == other.history_.columns[name].tobytes()
