import { z } from 'zod'
import {
  bulkRow,
  entityTypes,
  file,
  fileIds,
  fileKeys,
  fileRevision,
  fileSummary,
  fileUrl,
  maxFileBytes,
  maxRelations,
  relationInput,
} from './file-fields.ts'
import { fileId, fileRevisionId } from './ids.ts'
import { idsParam, limitParam, listOf, listOrBatchOf, pageParams } from './paging.ts'
import { defineRoute, mebibyte } from './route.ts'
import { storedContent } from './stored-content.ts'

// Files: bytes that a workspace keeps, with their versions.

const params = z.object({ id: fileId })
export const filePositionals = [{ name: 'file', target: 'params.id' }] as const
export const exampleFile = 'file_6kR2wB9xTnV4pL7c'
const positionals = filePositionals
const upload = { bodyLimit: 72 * mebibyte, streamed: { key: 'contentBase64', limit: maxFileBytes } } as const

export const fileRoutes = {
  list: defineRoute({
    id: 'files.list',
    endpoint: 'GET /files',
    summary: 'List the files you can see, newest first',
    query: z.object({
      q: z.string().max(100).optional().describe('Text in name or description.'),
      entityType: z.enum(entityTypes).optional().describe('Only those that belong to one such thing; with `entityId`.'),
      entityId: z.string().min(1).max(200).optional().describe('Only those that belong to it; with `entityType`.'),
      status: z.enum(['deleted']).optional().describe('`deleted`: those that are deleted (people only).'),
      ids: idsParam,
      ...pageParams,
    }),
    queryCodes: { refuse: { expand: 'expand.not_allowed_on_list' } },
    reply: listOrBatchOf(fileSummary),
    errors: ['list_deleted_forbidden'],
    cli: {
      command: 'file list',
      flags: {
        task: { description: 'Only those of this task.' },
        project: { description: 'Only those of this project.' },
      },
      flow: true,
      example: 'svc file list --task WEB-12',
    },
  }),

  create: defineRoute({
    id: 'files.create',
    endpoint: 'POST /files',
    summary: 'Upload a file',
    ...upload,
    body: z
      .object({
        name: fileKeys.name,
        contentBase64: storedContent,
        description: fileKeys.description.nullable().optional(),
        contentType: fileKeys.contentType.nullable().optional(),
        visibility: fileKeys.visibility.default('company'),
        relations: z.array(relationInput).max(maxRelations).default([]).describe('What it belongs to.'),
      })
      .meta({ id: 'FileCreate' }),
    reply: file,
    status: 201,
    errors: [
      'validation_error',
      'content_required',
      'visibility_flip_forbidden',
      'storage_unavailable',
      'resource_not_found',
    ],
    cli: {
      command: 'file upload',
      positionals: [
        { name: 'path', target: null, description: 'The file; default `-`, standard input.', default: '-' },
      ],
      flags: {
        name: { target: 'body.name', required: false, description: 'Its name; default that of the path.' },
        'content-base64': null,
        task: { description: 'The task it is attached to; default the one of this run. `none`: no task.' },
        role: { description: 'What it is to the task; default `attachment`.' },
      },
      flow: true,
      example: 'svc file upload report.pdf --task WEB-12 --description "The report of May"',
    },
  }),

  get: defineRoute({
    id: 'files.get',
    endpoint: 'GET /files/{id}',
    summary: 'Read one file: what is known of it, its text or its relations',
    params,
    query: z.object({
      expand: z
        .array(z.enum(['content', 'relations']))
        .optional()
        .describe('What to add: its text, what it belongs to.'),
      includeDeleted: z.boolean().optional().describe('Also when it is deleted (people only).'),
    }),
    queryCodes: { invalid: { expand: 'expand_unknown' } },
    reply: file,
    errors: ['expand_unknown', 'expand.content_too_large', 'kind_mismatch', 'storage_unavailable'],
    cli: [
      { command: 'file get', positionals, example: `svc file get ${exampleFile} --expand relations` },
      {
        command: 'file read',
        positionals,
        flags: { expand: null, 'include-deleted': null },
        flow: true,
        example: `svc file read ${exampleFile}`,
      },
    ],
  }),

  update: defineRoute({
    id: 'files.update',
    endpoint: 'PATCH /files/{id}',
    summary: 'Change name, description or visibility of a file',
    params,
    body: z
      .object({
        name: fileKeys.name,
        description: fileKeys.description.nullable(),
        visibility: fileKeys.visibility,
      })
      .partial()
      .meta({ id: 'FileUpdate' }),
    reply: file,
    errors: ['visibility_flip_forbidden'],
    cli: { command: 'file update', positionals, example: `svc file update ${exampleFile} --visibility private` },
  }),

  delete: defineRoute({
    id: 'files.delete',
    endpoint: 'DELETE /files/{id}',
    summary: 'Delete a file for good: its bytes are removed at once',
    description:
      'It cannot be restored. One that is deleted with others (`svc file bulk-delete`) can be, for ten minutes.',
    params,
    errors: ['sweeper_not_registered'],
    cli: { command: 'file delete', asks: true, positionals, example: `svc file delete ${exampleFile}` },
  }),

  restore: defineRoute({
    id: 'files.restore',
    endpoint: 'POST /files/{id}/restore',
    summary: 'Bring a deleted file back, while its bytes are there',
    params,
    reply: file,
    errors: ['restore_forbidden', 'not_deleted', 'restore_r2_gone'],
    cli: { command: 'file restore', positionals, example: `svc file restore ${exampleFile}` },
  }),

  download: defineRoute({
    id: 'files.download',
    endpoint: 'GET /files/{id}/download',
    summary: 'Get a URL from which the bytes of a file are downloaded without a token',
    params,
    reply: fileUrl,
    errors: ['kind_mismatch', 'storage_unavailable'],
    cli: {
      command: 'file download',
      positionals,
      flags: {
        revision: { description: 'Its version with this `frev_` id.' },
        output: {
          aliases: ['o'],
          description: 'Where to write it (`-`: standard output); default its name, in this folder.',
        },
      },
      flow: true,
      example: `svc file download ${exampleFile} --output report.pdf`,
    },
  }),

  revisions: defineRoute({
    id: 'files.revisions.list',
    endpoint: 'GET /files/{id}/revisions',
    summary: 'List the versions of a file, newest first',
    params,
    query: z.object({ ...pageParams, limit: limitParam({ max: 100, default: 50 }) }),
    reply: listOf(fileRevision),
    cli: { command: 'file history', positionals, example: `svc file history ${exampleFile}` },
  }),

  downloadRevision: defineRoute({
    id: 'files.revisions.download',
    endpoint: 'GET /files/{id}/revisions/{revisionId}/download',
    summary: 'Get a URL from which one version of a file is downloaded',
    params: z.object({ id: fileId, revisionId: fileRevisionId }),
    reply: fileUrl,
    errors: ['kind_mismatch', 'storage_unavailable'],
  }),

  replace: defineRoute({
    id: 'files.replace',
    endpoint: 'POST /files/{id}/replace',
    summary: 'Upload the next version of a file',
    params,
    ...upload,
    body: z.object({ contentBase64: storedContent }).meta({ id: 'FileReplace' }),
    reply: file,
    errors: ['validation_error', 'content_required', 'storage_unavailable'],
    cli: {
      command: 'file replace',
      positionals: [
        ...filePositionals,
        { name: 'path', target: null, description: 'The file; default `-`, standard input.', default: '-' },
      ],
      flags: { 'content-base64': null },
      flow: true,
      example: `svc file replace ${exampleFile} report.pdf`,
    },
  }),

  transferOwner: defineRoute({
    id: 'files.transferOwner',
    endpoint: 'POST /files/{id}/transfer-owner',
    summary: 'Give a file another owner',
    params,
    body: z
      .object({ newOwnerId: z.string().min(1).max(100).describe('The new owner: `usr_` id or UUID.') })
      .meta({ id: 'FileTransferOwner' }),
    reply: file,
    errors: ['owner_transfer.forbidden', 'owner_transfer.same_owner', 'owner_transfer.user_not_found'],
    cli: {
      command: 'file transfer-owner',
      positionals,
      flags: { 'new-owner': { target: 'body.newOwnerId', aliases: ['new-owner-id'] } },
      example: `svc file transfer-owner ${exampleFile} --new-owner usr_7aZ1qX5vNmG9kT3r`,
    },
  }),

  bulkDelete: defineRoute({
    id: 'files.bulkDelete',
    endpoint: 'POST /files/bulk-delete',
    summary: 'Delete several files; each can be restored for ten minutes',
    body: z.object({ fileIds }).meta({ id: 'FileBulkDelete' }),
    reply: z.object({ results: z.array(bulkRow) }).meta({ id: 'FileBulkResult' }),
    errors: ['sweeper_not_registered'],
    cli: {
      command: 'file bulk-delete',
      positionals: [
        { name: 'file', target: null, description: 'Files: ids such as file_6kR2wB9xTnV4pL7c.', variadic: true },
      ],
      flags: { 'file-ids': null },
      flow: true,
      example: `svc file bulk-delete ${exampleFile} file_2mX8qC5vRbN1tK6z`,
    },
  }),
} as const
