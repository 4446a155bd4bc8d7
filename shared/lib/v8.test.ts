import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const module = JSON.stringify(join(import.meta.dirname, 'v8.ts'))
/** Runs the script in a process of its own: the flags are those of the whole process. */
const answerOf = (script: string): unknown =>
  JSON.parse(
    execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script], {
      encoding: 'utf8',
    }),
  )

test.each([true, false])(
  'garbage is given back, what is in use stays, and compiled code is taken from caches (%s)',
  (isThorough) => {
    const script = `import { collectGarbage } from ${module}; import { cachedDataVersionTag } from 'node:v8'
    const sum = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s }
    const kept = { sum: sum(10) }; let left = []; for (let i = 0; i < 2e5; i++) left.push({ i }); left = null
    const tag = cachedDataVersionTag(); const before = process.memoryUsage().heapUsed; collectGarbage({ isThorough: ${isThorough} })
    const isFreed = process.memoryUsage().heapUsed < before - 1e6
    console.log(JSON.stringify([isFreed, kept.sum === sum(10), typeof gc, cachedDataVersionTag() === tag]))`
    expect(answerOf(script)).toEqual([true, true, 'undefined', true])
  },
)
