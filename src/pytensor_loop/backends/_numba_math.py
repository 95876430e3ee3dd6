"""exp, expm1, log, tanh and sigmoid without branches, so that LLVM can vectorize them.

Numba calls the C library for these, one element at a time: in most loops of a few dozen elements
that is where the time goes. Errors are below three units in the last place (tested).
Argument reduction and the polynomial of the logarithm follow fdlibm (Sun Microsystems, freely
distributable); the exponential is a Taylor polynomial on half of ``[-log 2, log 2]``.
They are compiled without ``fastmath``: the reduction is exact only as it is written.
"""

# The functions of this module are typed by Numba, argument by argument.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-overload"

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, in the low bits
_ROUND_BITS = np.int64(np.float64(_ROUND).view(np.int64))
_jit = njit(fastmath={"contract"}, error_model="numpy", no_cpython_wrapper=True)


@intrinsic
def _bits(typingctx, value):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _float(typingctx, bits):
    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@_jit
def _power_of_two(k):
    """Return ``2**k`` for -1022 <= k <= 1023."""
    return _float((k + 1023) << 52)


@_jit
def _reduce(x):
    """Return the integer k and the rest r with ``x = k log 2 + r``."""
    rounded = x * _LOG2_E + _ROUND
    k = rounded - _ROUND
    rest = (x - k * _LN2_HIGH) - k * _LN2_LOW
    return _bits(rounded) - _ROUND_BITS, rest


@_jit
def _expm1_rest(r):
    """Return ``exp(r) - 1`` for ``|r| <= log(2) / 2``."""
    r2 = r * r
    r4 = r2 * r2
    low = (1 / 2 + r * (1 / 6)) + r2 * (1 / 24 + r * (1 / 120))
    middle = (1 / 720 + r * (1 / 5040)) + r2 * (1 / 40320 + r * (1 / 362880))
    high = (1 / 3628800 + r * (1 / 39916800)) + r2 * (1 / 479001600 + r * (1 / 6227020800))
    return r + r2 * (low + r4 * (middle + r4 * high))


@_jit
def exp(x):
    """Return the exponential; infinite, zero and subnormal results included."""
    bounded = 710.0 if x > 710.0 else x
    bounded = -746.0 if bounded < -746.0 else bounded
    k, rest = _reduce(bounded)
    half = ((k + 4096) >> 1) - 2048
    mantissa = 1.0 + _expm1_rest(rest)
    return mantissa * _power_of_two(half) * _power_of_two(k - half)


@_jit
def expm1(x):
    """Return ``exp(x) - 1`` without cancellation near zero."""
    bounded = 709.9 if x > 709.9 else x
    bounded = -50.0 if bounded < -50.0 else bounded
    k, rest = _reduce(bounded)
    half = _power_of_two(k - 1)
    value = 2.0 * (half * _expm1_rest(rest) + (half - 0.5))
    return np.inf if x > 709.79 else value


@_jit
def tanh(x):
    """Return the hyperbolic tangent."""
    size = abs(x)
    doubled = 44.0 if size > 22.0 else 2.0 * size
    k, rest = _reduce(doubled)
    scale = _power_of_two(k)
    grown = scale * _expm1_rest(rest) + (scale - 1.0)
    value = grown / (grown + 2.0)
    return -value if x < 0.0 else (value if x > 0.0 else x + 0.0 * x)


@_jit
def sigmoid(x):
    """Return ``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + exp(-x))


@_jit
def log(x):
    """Return the natural logarithm; subnormal, zero, negative and infinite arguments included."""
    tiny = x < 2.2250738585072014e-308
    bits = _bits(x * 18014398509481984.0 if tiny else x)
    bits += 0x3FF0000000000000 - 0x3FE6A09E00000000  # so that the mantissa is at most sqrt(2)
    k = (bits >> 52) - 1023
    mantissa = _float((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E00000000)
    exponent = np.float64(k - 54 if tiny else k)
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (
        3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01)
    )
    even = z * (
        6.666666666666735130e-01
        + w
        * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    value = exponent * _LN2_HIGH - ((half - (s * (half + odd + even) + exponent * _LN2_LOW)) - f)
    value = x if x == np.inf else value
    value = -np.inf if x == 0.0 else value
    return value if x >= 0.0 else np.nan
