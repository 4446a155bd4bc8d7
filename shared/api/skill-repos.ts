import { z } from 'zod'
import { platformChange } from './agents.ts'
import { workspaceUuid } from './ids.ts'
import { defineRoute, orPlatformChange } from './route.ts'
import { repoInstall } from './skill-fields.ts'

// Skills out of git repositories.

export const skillRepoRoutes = {
  install: defineRoute({
    id: 'skills.installFromRepo',
    endpoint: 'POST /companies/{workspaceId}/skills/install-from-repo',
    aliases: { '/workspaces/{workspaceId}/skills/install-from-repo': 'workspaces.skills.installFromRepo' },
    summary: 'Add the skills of a public git repository, or bring those up to date that it brought before',
    description:
      'Searches for SKILL.md at the root and in the folders of `skills/`, `.agents/skills/` and `.claude/skills/`; with `subdir` below that folder, and in its own folders.',
    callers: orPlatformChange,
    params: z.object({ workspaceId: workspaceUuid.describe('UUID of the workspace.') }),
    body: z
      .object({
        url: z.string().min(1).max(2_000).describe('The https address of the repository, or owner/repo at GitHub.'),
        ref: z
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe('A branch, a tag or the whole id of a commit. Default: the default branch.'),
        subdir: z.string().max(500).optional().describe('The folder to search instead of the root.'),
        skills: z
          .array(z.string().min(1).max(200))
          .min(1)
          .max(100)
          .optional()
          .describe('Only these, by the names of their folders. Default: all.'),
      })
      .meta({ id: 'SkillRepoInstallRequest' }),
    reply: repoInstall,
    status: 201,
    otherReplies: { 202: platformChange },
    errors: [
      'platform_change_requires_run',
      'invalid_skill_source',
      'skill_source_unreadable',
      'no_skills_found',
      'skill_bundle_storage_failed',
    ],
    cli: {
      command: 'skill add',
      positionals: [{ name: 'source', target: 'body.url' }],
      flags: {
        company: { target: 'params.workspaceId', fallback: 'own_workspace', description: 'The workspace.' },
        skill: { target: 'body.skills', repeatable: true },
        skills: null,
      },
      example: 'svc skill add acme/skills --skill release-notes',
    },
  }),
} as const
