import { realWorld } from '../../shared/lib/world.ts'
import { makeBackup } from './backup.ts'
import type { BackupConfig } from './contents.ts'
import { restoreBackup } from './restore.ts'

// `svc-server backup` and `restore`; each prints one line of JSON.

export async function printBackup(config: BackupConfig, { file, key }: { file: string; key: boolean }): Promise<void> {
  const stop = new AbortController()
  // What is half made is removed before the end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const made = await makeBackup(config, { file, hasKey: key, world: realWorld, signal: stop.signal })
  print(made)
  if (made.filesMissing > 0)
    process.stderr.write(
      `The backup is without the bytes of ${made.filesMissing} files, which were lost before: their folder does not have them.\n`,
    )
}

export async function printRestored(
  config: BackupConfig,
  { file, replace }: { file: string; replace: boolean },
): Promise<void> {
  print(await restoreBackup(config, { file, mayReplace: replace, world: realWorld }))
}

const print = (result: object): boolean => process.stdout.write(`${JSON.stringify(result)}\n`)
