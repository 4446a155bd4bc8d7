import { z } from 'zod'
import { bulkRow, fileIds, fileRelation, relationKeys } from './file-fields.ts'
import { exampleFile, filePositionals as positionals } from './files.ts'
import { fileId, uuid } from './ids.ts'
import { limitParam, listOf, pageParams } from './paging.ts'
import { defineRoute } from './route.ts'

// The things that files belong to: tasks, projects, runs, comments and conversations.

const params = z.object({ id: fileId })
const one = { params: z.object({ id: fileId, relationId: uuid }), errors: ['relation_not_found'] } as const

export const fileRelationRoutes = {
  list: defineRoute({
    id: 'files.relations.list',
    endpoint: 'GET /files/{id}/relations',
    summary: 'List what a file belongs to, newest first',
    params,
    query: z.object({ ...pageParams, limit: limitParam({ max: 100, default: 50 }) }),
    reply: listOf(fileRelation),
    cli: { command: 'file relations list', positionals, example: `svc file relations list ${exampleFile}` },
  }),

  add: defineRoute({
    id: 'files.relations.add',
    endpoint: 'POST /files/{id}/relations',
    summary: 'Say what a file belongs to',
    params,
    body: z.object(relationKeys).meta({ id: 'FileRelate' }),
    reply: fileRelation,
    status: 201,
    errors: ['duplicate_relation'],
    cli: {
      command: 'file relate',
      positionals,
      example: `svc file relate ${exampleFile} --entity-type task --entity-id WEB-12 --role spec`,
    },
  }),

  get: defineRoute({
    id: 'files.relations.get',
    endpoint: 'GET /files/{id}/relations/{relationId}',
    summary: 'Read one relation of a file',
    ...one,
    reply: fileRelation,
  }),

  remove: defineRoute({
    id: 'files.relations.remove',
    endpoint: 'DELETE /files/{id}/relations/{relationId}',
    summary: 'Remove a relation of a file',
    ...one,
  }),

  bulk: defineRoute({
    id: 'files.bulkRelate',
    endpoint: 'POST /files/bulk-relate',
    summary: 'Say for several files what they belong to',
    body: z.object({ fileIds, ...relationKeys }).meta({ id: 'FileBulkRelate' }),
    reply: z.object({ results: z.array(bulkRow) }),
    errors: ['resource_not_found'],
    cli: {
      command: 'file bulk-relate',
      positionals: [
        { name: 'file', target: null, description: 'Files: ids such as file_6kR2wB9xTnV4pL7c.', variadic: true },
      ],
      flags: { 'file-ids': null },
      flow: true,
      example: `svc file bulk-relate ${exampleFile} file_2mX8qC5vRbN1tK6z --entity-type task --entity-id WEB-12 --role spec`,
    },
  }),
} as const
