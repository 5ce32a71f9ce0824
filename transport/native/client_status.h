// Outcomes that only a client sees: they never travel.
#pragma once

#include "transport/native/status.h"

namespace kvstrata {

constexpr Status kStatusClosed{32};    // The connection broke before the outcome was known.
constexpr Status kStatusTimedOut{33};  // The caller's own timeout passed; the connection is closed.

}  // namespace kvstrata
