"""The seed of all that happens by chance: the same in each run, unless SLUICE_CHAOS_SEED says another."""
import os
import random

_GIVEN = os.environ.get("SLUICE_CHAOS_SEED", "1")
SEED = str(random.SystemRandom().randrange(1_000_000)) if _GIVEN == "random" else _GIVEN


def tell_seed():
    print(f"\nseed {SEED}: repeat with SLUICE_CHAOS_SEED={SEED}", flush=True)
