import { z } from 'zod'
import { folderStates } from '../device/folder-check.ts'
import { devicePublicId, deviceUuid, folderShortId, repoUuid, timestamp } from './ids.ts'
import { defineRoute, peopleOnly } from './route.ts'

// Folders: directories on devices that runs work in. Only people call these routes.

export const folder = z
  .object({
    shortId: folderShortId,
    displayName: z.string(),
    config: z.object({
      deviceId: devicePublicId,
      rootPath: z.string(),
      bindingState: z
        .enum(['active', 'manual_rebind_required'])
        .describe(
          '`manual_rebind_required`: the device was removed, or says that the folder is gone; add it anew where it lies.',
        ),
    }),
    status: z.enum(['active', 'disconnected', 'revoked']),
    state: z
      .enum(folderStates)
      .nullable()
      .describe('What the device said last of the folder; null while it is not connected, or has not said.'),
    branch: z.string().nullable().describe('The branch that is checked out there, as the device said last.'),
    repoId: repoUuid.nullable().describe('The repo this folder holds; device runs for it start here.'),
    createdAt: timestamp,
  })
  .meta({ id: 'Folder' })
export type Folder = z.infer<typeof folder>

export const folderRemote = z
  .object({
    shortId: folderShortId,
    state: z.enum([...folderStates, 'device_disconnected']).describe('What the device said of the folder.'),
    url: z.string().nullable().describe('The remote `origin`, else the first one; without credentials.'),
    remotes: z.array(z.object({ name: z.string(), url: z.string() })),
    branch: z.string().nullable(),
    commit: z.string().nullable(),
    repoId: repoUuid.nullable().describe('The repo of the workspace that the remote names; null: none does.'),
  })
  .meta({ id: 'FolderRemote' })

/** The path is absolute on POSIX or Windows. */
export const absolutePath = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^(\/|[A-Za-z]:[\\/]|\\\\)/, 'must be an absolute path')

const ofFolder = { callers: peopleOnly, params: z.object({ shortId: folderShortId }) } as const
const positional = {
  name: 'fs_id',
  target: 'params.shortId',
  description: 'A folder: an id such as fs_0mN4bV8cQwE2rT6y.',
} as const

export const folderRoutes = {
  list: defineRoute({
    id: 'folders.list',
    endpoint: 'GET /folders',
    summary: 'List your folders',
    callers: peopleOnly,
    reply: z.object({ sources: z.array(folder) }),
    cli: { command: 'folder list', example: 'svc folder list' },
  }),

  create: defineRoute({
    id: 'folders.create',
    endpoint: 'POST /folders',
    summary: 'Add a folder of a device',
    callers: peopleOnly,
    body: z.object({
      displayName: z.string().trim().min(1).max(100).describe('Name shown for the folder.'),
      rootPath: absolutePath.describe('Absolute path on the device.'),
      deviceId: z
        .union([devicePublicId, deviceUuid])
        .describe('The device: its `dvc_` id, or the UUID of its connection.'),
    }),
    reply: folder,
    status: 201,
    plainErrors: ['plain.device_not_found', 'plain.device_not_owned'],
    cli: {
      command: 'folder add',
      positionals: [
        { name: 'name', target: 'body.displayName' },
        { name: 'path', target: 'body.rootPath' },
      ],
      flags: { 'device-id': { kind: 'string', fallback: 'this_device' } },
      example: 'svc folder add website ~/code/website',
    },
  }),

  update: defineRoute({
    id: 'folders.update',
    endpoint: 'PATCH /folders/{shortId}',
    summary: 'Say which repo a folder holds',
    ...ofFolder,
    body: z.object({ repoId: repoUuid.nullable().describe('Id of the repo; null clears it.') }),
    reply: folder,
    errors: ['repo_already_mapped', 'repo_not_found'],
    cli: {
      command: 'folder set-repo',
      positionals: [positional, { name: 'repo-id', target: 'body.repoId', nullWord: 'none' }],
      example: 'svc folder set-repo fs_0mN4bV8cQwE2rT6y none',
    },
  }),

  delete: defineRoute({
    id: 'folders.delete',
    endpoint: 'DELETE /folders/{shortId}',
    summary: 'Remove a folder; nothing on the device changes',
    ...ofFolder,
    cli: {
      command: 'folder remove',
      asks: true,
      positionals: [positional],
      example: 'svc folder remove fs_0mN4bV8cQwE2rT6y',
    },
  }),

  gitRemote: defineRoute({
    id: 'folders.gitRemote',
    endpoint: 'GET /folders/{shortId}/git-remote',
    summary: "Read a folder's git remote and the repo of the workspace it names",
    ...ofFolder,
    reply: folderRemote,
    cli: {
      command: 'folder git-remote',
      positionals: [positional],
      example: 'svc folder git-remote fs_0mN4bV8cQwE2rT6y',
    },
  }),
} as const
