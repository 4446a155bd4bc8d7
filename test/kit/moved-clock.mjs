// Loaded into a program before its own code (`NODE_OPTIONS=--import=...`): its wall clock goes wrong by as many milliseconds as the
// file in MOVED_CLOCK says, from the moment on at which it says so. The monotonic clock goes on as it does, as on a machine whose
// time is set by a person or by a network.
import { readFileSync } from 'node:fs'

const file = process.env.MOVED_CLOCK
const RealDate = Date
const readEveryMs = 50
let offset = 0

function read() {
  try {
    offset = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    // The clock is right as long as nobody has moved it.
  }
}

globalThis.Date = class Date extends RealDate {
  constructor(...values) {
    if (values.length === 0) super(RealDate.now() + offset)
    else super(...values)
  }
  static now() {
    return RealDate.now() + offset
  }
}
if (file !== undefined) {
  read()
  setInterval(read, readEveryMs).unref()
}
