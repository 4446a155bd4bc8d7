import { z } from 'zod'
import { visibilities } from './agents.ts'
import { fileId, fileRevisionId, timestamp, userPublicId, uuid } from './ids.ts'

// Files as clients read them.

/** Bytes of one upload. */
export const maxFileBytes = 52_428_800
/** Bytes of text that are given within an answer. */
export const inlineBytes = { agent: 51_200, person: 1_048_576 } as const
export const fileUrlSeconds = 300
export const maxBulkFiles = 100
export const entityTypes = ['task', 'project', 'run', 'comment', 'conversation'] as const
export type EntityType = (typeof entityTypes)[number]

const authorType = z.enum(['user', 'agent'])
const createdBy = z
  .object({ type: authorType, id: z.string().describe('`usr_` or `agt_` id.'), name: z.string() })
  .meta({ id: 'FileAuthor' })

export const fileRelation = z
  .object({
    id: uuid,
    fileId,
    entityType: z.enum(entityTypes),
    entityId: z.string().describe('`tsk_`, `prj_`, `run_`, `msg_` or `cnv_` id.'),
    role: z.string(),
    createdAt: timestamp,
  })
  .meta({ id: 'FileRelation' })
export type FileRelation = z.infer<typeof fileRelation>

export const file = z
  .object({
    object: z.literal('file'),
    id: fileId,
    name: z.string(),
    contentType: z.string().nullable(),
    sizeBytes: z.number().int().describe('Of the current version.'),
    description: z.string().nullable(),
    ownerUserId: userPublicId.nullable().describe('null when an agent uploaded it.'),
    visibility: z.enum(visibilities),
    deletedAt: timestamp.nullable(),
    restorableUntil: timestamp
      .nullable()
      .optional()
      .describe('Of a deleted file: until when `restore` brings it back; null: its bytes are gone.'),
    createdBy: createdBy.nullable(),
    sha256: z.string().nullable().describe('Of the current bytes.'),
    textPreview: z.string().nullable().describe('The beginning of a text; null for other files.'),
    revisionCount: z.number().int().describe('The number of the current version.'),
    content: z.string().optional().describe('The whole text, with `expand[]=content`; only of text files.'),
    relations: z.array(fileRelation).optional().describe('With `expand[]=relations`: the newest 100.'),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'File' })
export type File = z.infer<typeof file>

export const fileSummary = file
  .pick({
    object: true,
    id: true,
    name: true,
    contentType: true,
    sizeBytes: true,
    description: true,
    restorableUntil: true,
    createdAt: true,
    updatedAt: true,
  })
  .meta({ id: 'FileSummary' })
export type FileSummary = z.infer<typeof fileSummary>

export const fileRevision = z
  .object({
    object: z.literal('file_revision'),
    id: fileRevisionId,
    fileId,
    version: z.number().int(),
    sizeBytes: z.number().int(),
    contentType: z.string().nullable(),
    sha256: z.string(),
    author: createdBy.nullable(),
    createdAt: timestamp,
  })
  .meta({ id: 'FileRevision' })
export type FileRevision = z.infer<typeof fileRevision>

export const fileUrl = z
  .object({
    object: z.literal('file_url'),
    url: z.string().describe('Works without a token until it expires.'),
    expiresAt: timestamp,
  })
  .meta({ id: 'FileUrl' })

const mediaType = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(\s*;\s*[\w!#$&^.+-]+=("[^"\\\r\n]*"|[\w!#$&^.+-]+))*$/

export const fileKeys = {
  name: z
    .string()
    .trim()
    .min(1)
    .max(255)
    .regex(/^[^\p{Cc}/\\]+$/u, 'no slashes or control characters')
    .describe('Its name.'),
  description: z.string().max(2_000).describe('What it is.'),
  visibility: z.enum(visibilities).describe('`private`: only its owner and workspace admins see it.'),
  contentType: z
    .string()
    .max(255)
    .regex(mediaType, 'must be a media type, such as text/plain')
    .describe('MIME type; found out when it is left out.'),
} as const

const entityRef = z.string().min(1).max(200).describe('`tsk_` id, task key, `prj_`, `run_`, `cnv_` or `msg_` id.')
export const relationKeys = {
  entityType: z.enum(entityTypes).describe('What the file belongs to.'),
  entityId: entityRef,
  role: z.string().trim().min(1).max(100).describe('What it is there, for example `attachment` or `spec`.'),
} as const
export const relationInput = z.object(relationKeys)
export type RelationInput = z.infer<typeof relationInput>
export const maxRelations = 20

/** The row of one file in the answer of a bulk call. */
export const bulkRow = z.object({
  fileId: z.string(),
  ok: z.boolean(),
  code: z.enum(['file_not_found', 'duplicate_relation', 'internal_error']).optional(),
})
export type BulkRow = z.infer<typeof bulkRow>
export const fileIds = z
  .array(z.string().min(1).max(200))
  .min(1)
  .max(maxBulkFiles)
  .describe(`Ids of files, at most ${maxBulkFiles}.`)
