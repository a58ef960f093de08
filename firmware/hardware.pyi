"""The types of hardware.py: what the firmware takes out of MicroPython's own modules, as micropython-esp32-stubs has them."""

from typing import Any, Literal, overload

import esp32
import machine

from .say import CannotStart

class Absent(CannotStart): ...

class Machine:
    """The module `machine`."""

    ADC: type[machine.ADC]
    I2C: type[machine.I2C]
    Pin: type[machine.Pin]
    RTC: type[machine.RTC]
    Timer: type[machine.Timer]
    UART: type[machine.UART]
    WDT: type[machine.WDT]

class Esp32:
    """The module `esp32`."""

    Partition: type[esp32.Partition]

@overload
def module(name: Literal["machine"], what_for: str) -> Machine: ...
@overload
def module(name: Literal["esp32"], what_for: str) -> Esp32: ...
@overload
def module(name: str, what_for: str) -> Any: ...
@overload
def part(owner: Machine, name: Literal["ADC"], what_for: str) -> type[machine.ADC]: ...
@overload
def part(owner: Machine, name: Literal["I2C"], what_for: str) -> type[machine.I2C]: ...
@overload
def part(owner: Machine, name: Literal["RTC"], what_for: str) -> type[machine.RTC]: ...
@overload
def part(owner: Machine, name: Literal["Timer"], what_for: str) -> type[machine.Timer]: ...
@overload
def part(owner: Machine, name: Literal["UART"], what_for: str) -> type[machine.UART]: ...
@overload
def part(owner: Machine, name: Literal["WDT"], what_for: str) -> type[machine.WDT]: ...
@overload
def part(owner: Esp32, name: Literal["Partition"], what_for: str) -> type[esp32.Partition]: ...
@overload
def part(owner: Any, name: str, what_for: str) -> Any: ...
