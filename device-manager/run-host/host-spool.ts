import { openSpool, type Spool } from '../spool/spool.ts'

/** A host waits only shortly for the others' locks: its event loop serves the terminal and the daemon as well. */
const busyTimeoutMs = 250

export function spoolOpener(path: string, maxPageCount: number | undefined): () => Spool {
  const limit = maxPageCount === undefined ? {} : { maxPageCount }
  return () => openSpool(path, { repair: false, busyTimeoutMs, ...limit })
}
