import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Proof } from '../../../scripts/proofs/report.ts'
import { hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'

// Short rounds of the proof that guarantees.md tells of: it works, and no promise is broken. That it finds a broken one,
// scripts/proofs/judge.test.ts shows.

const root = join(import.meta.dirname, '../../..')
const main = ['--disable-warning=ExperimentalWarning', join(root, 'scripts/proofs/main.ts')]

async function proves(...args: readonly string[]): Promise<Proof> {
  const options = { cwd: root, maxBuffer: 2 ** 24 }
  const proving = promisify(execFile)(process.execPath, [...main, ...args, '--json'], options)
  // A proof that fails tells why all the same. A machine that is busy with other tests may be late, and that is no promise broken.
  const { stdout } = await proving.catch((error: { code: number; stdout: string }) => {
    if (error.code === 1 && error.stdout !== '') return error
    throw error
  })
  return JSON.parse(stdout) as Proof
}
const triedOf = ({ rows }: Proof) => Object.fromEntries(rows.map(({ promise, tried }) => [promise, tried]))

const databases = isLong && hasPostgres() ? ['sqlite', 'postgres'] : ['sqlite']

test.each(databases)('real programs on %s, and faults that strike them', { timeout: 300_000 }, async (database) => {
  const minutes = isLong ? '1' : '0.1'
  const proof = await proves('--minutes', minutes, '--database', database, '--seed', '5')
  expect(proof.broken).toEqual([])
  const tried = triedOf(proof)
  for (const promise of ['events', 'starts', 'ending', 'truth', 'changes']) expect(tried[promise]).toBeGreaterThan(0)
  expect(Object.keys(proof.faults).length).toBeGreaterThan(0)
})

test.each(databases)(
  'runs on %s that end while something is away, by a moved clock',
  { timeout: 300_000 },
  async (database) => {
    const count = isLong ? 400 : 20
    const proof = await proves('--returns', String(count), '--database', database, '--seed', '5')
    expect(proof.broken).toEqual([])
    expect(triedOf(proof)).toMatchObject({ events: count, ending: count, truth: count })
    expect(proof.absences!.reduce((sum, { runs }) => sum + runs, 0)).toBe(count)
  },
)

test.each([
  ['--minutes', '0'],
  ['--minutes', 'two'],
  ['--seed', '-1'],
  ['--returns', '1.5'],
  ['--database', 'mysql'],
  ['--days', '1'],
])('%s %s is refused, with how it is used', async (...args) => {
  await expect(proves(...args)).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('usage: scripts/prove'),
  })
})
