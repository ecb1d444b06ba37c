// Integers of 128 bits, for a product of two of 64. They are the compiler's own: division is a call
// of its library, all else a few instructions. `__extension__` since ISO C++ does not have them.
#pragma once

namespace sluice {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

}  // namespace sluice
