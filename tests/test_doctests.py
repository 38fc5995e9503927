"""Every example in a docstring of the installed packages prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import formulations
import rankopt

MODULES = [
    module
    for package in (rankopt, formulations)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


def source(module: pkgutil.ModuleInfo) -> str:
    return module.module_finder.find_spec(module.name).loader.get_source(module.name)


@pytest.mark.parametrize("name", ["rankopt", "formulations", *(one.name for one in MODULES if ">>>" in source(one))])
def test_examples_print_what_they_say(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0
