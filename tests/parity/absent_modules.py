"""Stands for packages that need a GPU to be installed, so that modules can be imported which need them for other purposes."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types


class Anything(type):
    """A class of which every attribute is a class like it."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {"__init__": lambda *_, **__: None})

    def __getitem__(cls, _):
        return cls

    def __or__(cls, _):
        return object

    __ror__ = __or__


class AbsentModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {"__init__": lambda *_, **__: None})


class AbsentModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        absent = any(name == each or name.startswith(each + ".") for each in self.names)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        module = AbsentModule(spec.name)
        module.__path__, module.__version__ = [], "0.0.0"
        return module

    def exec_module(self, module):
        pass


def allow_absent(names):
    """Only those that are really absent; asked last, after every other finder."""
    sys.meta_path.append(AbsentModules([name for name in names if importlib.util.find_spec(name) is None]))
