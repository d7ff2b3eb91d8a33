// All of Stax.
#pragma once

#include "stax/device.h"
#include "stax/dlpack.h"
#include "stax/dtype.h"
#include "stax/error.h"
#include "stax/factories.h"
#include "stax/functions.h"
#include "stax/indexing.h"
#include "stax/io.h"
#include "stax/lists.h"
#include "stax/nn.h"
#include "stax/operators.h"
#include "stax/options.h"
#include "stax/random.h"
#include "stax/scalar.h"
#include "stax/symint.h"
#include "stax/tensor.h"
