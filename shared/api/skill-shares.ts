import { z } from 'zod'
import { platformChange } from './agents.ts'
import { timestampInput } from './ids.ts'
import { listOf, pageParams } from './paging.ts'
import { defineRoute, orPlatformChange, peopleOnly } from './route.ts'
import { newSkillShare, sharedSkill, skill, skillRef, skillShare, skillShareId } from './skill-fields.ts'
import { exampleSkill, skillLookupErrors, skillParams, skillPositionals } from './skills.ts'

// Links by which people of other workspaces see a skill and copy it.

const shared = z.object({ shareToken: z.string().min(1).max(200).describe('The token of the link.') })

export const skillShareRoutes = {
  share: defineRoute({
    id: 'skills.share',
    endpoint: 'POST /skills/{skillId}/share',
    summary: 'Make a link by which whoever has it sees a skill without signing in, and may copy it',
    callers: peopleOnly,
    isSecret: true,
    params: skillParams,
    body: z
      .object({
        expiresAt: timestampInput.nullable().optional().describe('Until when it works; default: until it is revoked.'),
      })
      .meta({ id: 'SkillShareCreate' }),
    reply: newSkillShare,
    status: 201,
    errors: [...skillLookupErrors, 'skill_share_forbidden'],
    cli: {
      command: 'skill share',
      positionals: skillPositionals,
      example: `svc skill share ${exampleSkill} --expires-at 2030-01-01T00:00:00Z`,
    },
  }),

  list: defineRoute({
    id: 'skills.shares.list',
    endpoint: 'GET /skills/{skillId}/shares',
    summary: 'List the share links of a skill, newest first, without their tokens',
    callers: peopleOnly,
    params: skillParams,
    query: z.object(pageParams),
    reply: listOf(skillShare),
    errors: skillLookupErrors,
  }),

  revoke: defineRoute({
    id: 'skills.shares.revoke',
    endpoint: 'DELETE /skills/{skillId}/shares/{shareId}',
    summary: 'Revoke a share link',
    callers: peopleOnly,
    params: z.object({ skillId: skillRef, shareId: skillShareId }),
    errors: [...skillLookupErrors, 'share_not_found'],
  }),

  preview: defineRoute({
    id: 'skills.shared.preview',
    endpoint: 'GET /skills/shared/{shareToken}',
    summary: 'See a shared skill: what it is and which files it has',
    callers: 'none',
    rate: 'share_preview',
    params: shared,
    reply: sharedSkill,
    errors: ['share_not_found', 'share_gone'],
  }),

  install: defineRoute({
    id: 'skills.shared.install',
    endpoint: 'POST /skills/shared/{shareToken}/install',
    summary: 'Copy a shared skill into your workspace',
    callers: orPlatformChange,
    params: shared,
    body: z
      .object({ targetCompanyId: z.string().min(1).max(200).describe('Your workspace: its UUID or `ws_` id.') })
      .meta({ id: 'SharedSkillInstall' }),
    reply: skill,
    status: 201,
    otherReplies: { 202: platformChange },
    errors: [
      'platform_change_requires_run',
      'share_not_found',
      'share_gone',
      'share_forbidden',
      'skill_bundle_storage_failed',
    ],
  }),
} as const
