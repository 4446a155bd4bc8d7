import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const compiler = JSON.stringify(join(import.meta.dirname, 'compiler.ts'))
/** In a process of its own: the flags are those of the whole process. */
const answerOf = (script: string): unknown =>
  JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    }),
  )

const hot = `
  const sum = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s }
`

/** Optimized code is many times as fast, so a machine that is busy does not turn this around. */
test('a function that runs often is optimized once there is work, and not before', () => {
  const script = `import { compileForMemory, compileForSpeed } from ${compiler}; ${hot}
    const cpuMs = () => { const from = process.cpuUsage().user; for (let i = 0; i < 30; i++) sum(5e5); return (process.cpuUsage().user - from) / 1e3 }
    compileForMemory(); cpuMs(); const before = cpuMs(); compileForSpeed(); cpuMs(); const after = cpuMs()
    console.log(JSON.stringify(before / after))`
  expect(answerOf(script)).toBeGreaterThan(2)
})
