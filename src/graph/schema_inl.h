// Templates of schema.h.
#pragma once
