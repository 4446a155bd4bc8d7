import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { dataFiles } from '../../shared/lib/places.ts'
import type { BackupConfig } from './contents.ts'

// PostgreSQL has programs of its own for this, of the version of its server: what to type is said here (docs/backup.md, docs/adr/0092).

/** Says what to type; `$SVC_DATABASE_URL` stands for an address that may have a password. */
export function howToDump(config: BackupConfig): string {
  const { key, files } = placesOf(config)
  return [
    'PostgreSQL is backed up by its own program, which may run while the server does. Type:',
    '  pg_dump --format=custom --file=svc.dump "$SVC_DATABASE_URL"',
    ...(key === null || !existsSync(keyFile(config)) ? [] : [`  cp ${key} .`]),
    ...(files === null
      ? ['The bytes of files stay in their bucket.']
      : [`  tar -cf files.tar -C ${files} .`, 'In this order: the bytes of files after the database.']),
  ].join('\n')
}

export function howToLoad(config: BackupConfig): string {
  const { key, files } = placesOf(config)
  return [
    'PostgreSQL is restored by its own program, into an empty database, while no server uses it. Type:',
    '  pg_restore --no-owner --exit-on-error --single-transaction --dbname="$SVC_DATABASE_URL" svc.dump',
    ...(key === null ? [] : [`  mkdir -p -m 0700 ${inShell(config.dataDir)}`, `  install -m 0600 secrets.key ${key}`]),
    ...(files === null ? [] : [`  mkdir -p ${files} && tar -xf files.tar -C ${files}`]),
  ].join('\n')
}

/** It is made with the first secret. */
const keyFile = ({ dataDir }: Pick<BackupConfig, 'dataDir'>) => join(dataDir, dataFiles.secretsKey)

const placesOf = ({ dataDir, files, secretsKey }: BackupConfig) => ({
  key: secretsKey === null ? inShell(keyFile({ dataDir })) : null,
  files: files.kind === 'disk' ? inShell(files.folder) : null,
})

const inShell = (path: string): string =>
  /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`
