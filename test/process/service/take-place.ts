import { join } from 'node:path'
import { takePlace } from '../../../device-manager/start/lock.ts'

/** Takes one place after the other, each at the same moment as its rival, and prints who has them. */
const [folder = '', startAt = '0', rounds = '0'] = process.argv.slice(2)
const holders: (number | null)[] = []
for (let round = 0; round < Number(rounds); round++) {
  while (Date.now() < Number(startAt) + round * 20);
  holders.push(takePlace({ daemon: join(folder, `${round}.json`), lock: join(folder, `${round}.lock`) }, {}))
}
process.stdout.write(`${JSON.stringify({ pid: process.pid, holders })}\n`)
// Stays, so that its rival finds it alive.
process.stdin.resume()
