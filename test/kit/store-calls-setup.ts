import { expect } from 'vitest'
import { countStoreCalls } from './store-calls.ts'

// Nothing is asserted: it says which file this worker is at.
// oxlint-disable-next-line vitest/no-standalone-expect
if (expect.getState().testPath?.includes('/test/store/') === true) countStoreCalls()
