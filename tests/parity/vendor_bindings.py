"""What the vendors' Python bindings of NVML and AMD SMI declare, in the words of the program telemetry_layouts.

Neither a GPU nor a driver is needed: a stand-in takes the place of the shared library.
"""

import ctypes
import importlib.util
import inspect
import os
import types
from unittest import mock


def describe_type(kind):
    """"handle", "char", "integer32", "real32" or a struct's name, behind "*" for a pointer to it."""
    if issubclass(kind, ctypes._Pointer):
        opaque = issubclass(kind._type_, ctypes.Structure) and not hasattr(kind._type_, "_fields_")
        return "handle" if opaque else "*" + describe_type(kind._type_)
    if issubclass(kind, ctypes.Array):
        return "*" + describe_type(kind._type_)
    if issubclass(kind, ctypes.Structure):
        return kind.__name__.removeprefix("struct_")
    if kind._type_ in "Pc":
        return {"P": "handle", "c": "char"}[kind._type_]
    return ("real" if kind._type_ in "fdg" else "integer") + str(8 * ctypes.sizeof(kind))


def describe_struct(kind):
    fields = {name: getattr(kind, name) for name, *_ in kind._fields_}
    return {"size": ctypes.sizeof(kind), "fields": {name: [field.offset, field.size] for name, field in fields.items()}}


class Binding:
    """A binding's module and how it is named in reports."""

    def __init__(self, name, module):
        self.name, self.module = name, module

    def struct(self, name):
        kind = getattr(self.module, name, None)
        return describe_struct(kind) if kind else None

    def constant(self, *names):
        """Of the first of these names that there is: some were renamed."""
        for name in names:
            value = getattr(self.module, name, None)
            if value is not None:
                return getattr(value, "value", value)
        return None

    def constants(self, prefix):
        return {name: self.constant(name) for name in vars(self.module) if name.startswith(prefix)}


class NvmlBinding(Binding):
    """Types of arguments are those of the values that the binding's functions pass to the library."""

    def function(self, symbol):
        caller = getattr(self.module, symbol, None) or getattr(self.module, symbol.removesuffix("_v2"), None)
        if caller is None:
            return None
        calls = {}
        parameters = inspect.signature(caller).parameters.values()
        needed = [each.name for each in parameters if each.default is inspect.Parameter.empty]
        self.module.nvmlLib = self._library(calls)
        self.module._nvmlGetFunctionPointer_cache.clear()
        caller(*[self.module.c_nvmlDevice_t() if name in ("handle", "device") else 0 for name in needed])
        return calls.get(symbol)

    def _library(self, calls):
        def enter(symbol, *arguments):
            calls[symbol] = ["integer32", *map(self._describe_value, arguments)]
            # A list without space returns its length; the next call brings the space.
            return self.module.NVML_ERROR_INSUFFICIENT_SIZE if None in arguments else self.module.NVML_SUCCESS

        class Library:
            def __getattr__(self, symbol):
                return lambda *arguments: enter(symbol, *arguments)

        return Library()

    @staticmethod
    def _describe_value(value):
        if value is None:
            return "*"
        if hasattr(value, "_obj"):  # made by byref()
            return "*" + describe_type(type(value._obj))
        return "integer32" if isinstance(value, int) else describe_type(type(value))


class AmdSmiBinding(Binding):
    def function(self, symbol):
        found = getattr(self.module, symbol, None)
        if found is None:
            return None
        return [describe_type(found.restype), *map(describe_type, found.argtypes or [])]


class EveryFunction:
    """Stands for libamd_smi while its binding is imported, which notes the types of each function's arguments."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, symbol):
        function = types.SimpleNamespace(restype=ctypes.c_int, argtypes=[])
        setattr(self, symbol, function)
        return function


def load_nvml():
    import pynvml
    return NvmlBinding("nvidia-ml-py", pynvml)


def load_amd_smi(version, wrapper):
    """The binding in the file amdsmi_wrapper.py; some versions insist on ROCM_PATH."""
    spec = importlib.util.spec_from_file_location("amdsmi_wrapper", wrapper)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(ctypes, "CDLL", EveryFunction), mock.patch.dict(os.environ, ROCM_PATH="/opt/rocm"):
        spec.loader.exec_module(module)
    return AmdSmiBinding(f"amdsmi {version}", module)
