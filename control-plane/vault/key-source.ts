import { join } from 'node:path'
import { dataFiles } from '../../shared/lib/places.ts'
import type { KeySource } from './vault.ts'

/** The source of the key of the secrets: the environment, else a file beside the database. */
export function keySourceOf({
  config,
}: {
  config: { secretsKey: string | null; otherSecretsKey: string | null; dataDir: string; databaseUrl: string }
}): KeySource {
  const other = config.otherSecretsKey
  if (config.secretsKey !== null) return { kind: 'given', text: config.secretsKey, other }
  if (config.databaseUrl === ':memory:') return { kind: 'memory', other }
  return { kind: 'file', path: join(config.dataDir, dataFiles.secretsKey), other }
}
