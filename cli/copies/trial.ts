import { execa } from 'execa'
import { join } from 'node:path'
import { readdirSync } from 'node:fs'
import { CliError } from '../errors/cli-error.ts'

/** Unpacks a tarball that was verified into a folder, and returns the folder of the copy in it. */
export async function unpack(tarball: string, into: string): Promise<string> {
  const ended = await execa('tar', ['-xzf', tarball, '-C', into, '--no-same-owner'], {
    stdin: 'ignore',
    timeout: 10 * 60_000,
    reject: false,
  })
  if (ended.failed)
    throw new CliError(
      'not_unpacked',
      `The tarball could not be unpacked: ${(ended.stderr || ended.shortMessage || '').slice(0, 500)}`,
      {
        remediation: 'Nothing was changed. Is `tar` installed, and is there room on the disk?',
      },
    )
  const [folder, ...others] = readdirSync(into)
  if (folder === undefined || others.length > 0)
    throw new CliError('not_unpacked', 'The tarball does not have one folder.', { remediation: 'Nothing was changed.' })
  return join(into, folder)
}

/** A cold disk, and an antivirus that reads it all. */
const trialMs = 2 * 60_000

/** Runs the programs of a copy once, its natives included, before anything is switched to it. */
export async function tryCopy(folder: string, version: string): Promise<void> {
  const trials = [
    ['svc', '--version'],
    ['svc-device', '--version'],
    ['svc-device', 'check'],
    ['svc-server', '--version'],
  ] as const
  for (const [program, word] of trials) {
    const { HOME = '/', PATH = '/usr/bin:/bin' } = process.env
    const ended = await execa(join(folder, 'bin', program), [word], {
      stdin: 'ignore',
      env: { HOME, PATH },
      extendEnv: false,
      timeout: trialMs,
      reject: false,
    })
    const isAsSaid = word !== '--version' || ended.stdout.trim() === version
    if (!ended.failed && isAsSaid) continue
    const why = ended.failed
      ? ended.stderr.trim() || (ended.shortMessage ?? '')
      : `it says that it is ${ended.stdout.trim()}`
    throw new CliError(
      'does_not_run',
      `\`${program} ${word}\` of ${version} does not run here: ${why.slice(0, 1_000)}`,
      {
        remediation: 'Nothing was changed: the version before goes on.',
      },
    )
  }
}
