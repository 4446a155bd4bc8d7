import { globSync, linkSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inject } from 'vitest'

/**
 * A device manager keeps what its run hosts and their `svc` compile in its state folder. That of a test is new, so it is given what
 * those of other tests compiled: a fifth of the start of a run host.
 */
export function lendCompiled(stateDir: string): void {
  const others = compiledByOthers()
  if (others !== null) linkAll(others, join(stateDir, 'compile-cache'))
}

/** Keeps what was compiled there for devices to come; the files are the same ones. */
export function keepCompiled(stateDir: string): void {
  const others = compiledByOthers()
  if (others !== null) linkAll(join(stateDir, 'compile-cache'), others)
}

/** null: in a program that a test starts. */
const compiledByOthers = (): string | null =>
  process.env['SVC_TEST_PROGRAMS'] === undefined ? join(inject('databases').folder, 'compiled') : null

function linkAll(from: string, to: string): void {
  for (const file of globSync('*/*', { cwd: from })) {
    const copy = join(to, file)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
    try {
      linkSync(join(from, file), copy)
    } catch (error) {
      // It is there, or Node writes it anew and moves it to its name.
      if (!['EEXIST', 'ENOENT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }
}
