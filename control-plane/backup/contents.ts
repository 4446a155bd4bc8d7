import { z } from 'zod'
import { blobFolders } from '../blobs/disk.ts'
import type { ServerConfig } from '../config.ts'
import { dataFiles } from '../../shared/lib/places.ts'

// What a backup is: a tar archive, whose entries stand in this order.
//
//   backup.json            who made it, when, of which schema, and what is not in it
//   svc.db                 the database as it was at one moment
//   secrets.key            where the key of the secrets is a file
//   files/<mark>/<..>/<id> the bytes of each file that the database knows
//   SHA256SUMS             a line for each entry before it, as `sha256sum --check` reads it
//
// The last entry says that the archive is whole.

/** What a backup is made of, and restored to. */
export type BackupConfig = Pick<ServerConfig, 'dataDir' | 'databaseUrl' | 'files' | 'otherFiles' | 'secretsKey'>

export const entryNames = {
  about: 'backup.json',
  database: 'svc.db',
  key: dataFiles.secretsKey,
  sums: 'SHA256SUMS',
} as const

/** Counts the forms of archives; a program refuses those after its own. */
export const backupFormat = 1

export const backupAbout = z.object({
  format: z.literal(backupFormat),
  /** The version of the program that made it. */
  version: z.string().max(100),
  createdAt: z.iso.datetime(),
  /** The newest migration of the database. */
  schema: z.number().int(),
  /** `bucket`: the bytes of files stay there. */
  files: z.enum(['archive', 'bucket']),
  /** `settings`: the environment of the server has the key; `none`: no secret was stored yet. */
  key: z.enum(['archive', 'left_out', 'settings', 'none']),
})
export type BackupAbout = z.infer<typeof backupAbout>

const filesFolder = 'files'

export const blobEntry = (mark: string, id: string): string => [filesFolder, mark, ...blobFolders(id)].join('/')

/** Reads the name of an entry of a blob; null: it is none. No part of it can lead elsewhere. */
export function readBlobEntry(name: string): { mark: string; id: string } | null {
  const [, mark = '', id = ''] = /^files\/(files_\w{1,100})\/\w{2}\/(\w{2,100})$/.exec(name) ?? []
  return id !== '' && blobEntry(mark, id) === name ? { mark, id } : null
}

export const sumLine = (sha256: string, name: string): string => `${sha256}  ${name}`
