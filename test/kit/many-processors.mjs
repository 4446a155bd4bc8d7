import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'

// Loaded before a program: it finds many processors.
os.availableParallelism = () => 16
syncBuiltinESMExports()
