import { halfRequest } from '../../kit/half-request.ts'
import type { Stage } from '../contract/stage.ts'
import { on, post } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'
import { ambiguousSkill, ofSkillRoutes, shareRoutesBelow, withoutSkillStorage } from './kit/skill-codes.ts'
import { makePluginSkill } from './kit/plugins.ts'
import { makeShare, makeSkill } from './kit/skills.ts'

const unknownToken = `svc_shr_${'0'.repeat(43)}`
const aShared: Recipe = async (stage) => {
  const { shareToken } = await makeShare(stage)
  return { params: { shareToken } }
}
const installed = ({ owner }: { owner: { workspaceId: string } }) => ({ targetCompanyId: owner.workspaceId })

async function revoked(stage: Stage): Promise<string> {
  const { skillId, shareId, shareToken } = await makeShare(stage)
  await stage.server.ok(`/skills/${skillId}/shares/${shareId}`, { method: 'DELETE' })
  return shareToken
}

export const skillShareFacts: ResourceFacts = {
  requests: {
    'skills.share': async (stage) => ({ params: { skillId: (await makeSkill(stage)).id }, body: {} }),
    'skills.shares.list': async (stage) => ({ params: { skillId: (await makeShare(stage)).skillId } }),
    'skills.shares.revoke': async (stage) => {
      const { skillId, shareId } = await makeShare(stage)
      return { params: { skillId, shareId } }
    },
    'skills.shared.preview': aShared,
    'skills.shared.install': async (stage) => ({ ...(await aShared(stage)), body: installed(stage) }),
  },
  codes: [
    on('skills.shared.preview', '404 share_not_found', ({ server }) =>
      server.call(`/skills/shared/${unknownToken}`, { token: null }),
    ),
    on('skills.shared.preview', '410 share_gone', async (stage) =>
      stage.server.call(`/skills/shared/${await revoked(stage)}`, { token: null }),
    ),
    on('skills.shared.install', '404 share_not_found', (stage) =>
      stage.server.call(`/skills/shared/${unknownToken}/install`, post(installed(stage))),
    ),
    on('skills.shared.install', '410 share_gone', async (stage) =>
      stage.server.call(`/skills/shared/${await revoked(stage)}/install`, post(installed(stage))),
    ),
    on('skills.shared.install', '403 share_forbidden', async (stage) => {
      const { shareToken } = await makeShare(stage)
      const targetCompanyId = (await stage.stranger()).workspaceId
      return stage.server.call(`/skills/shared/${shareToken}/install`, post({ targetCompanyId }))
    }),
    on('skills.shared.install', '403 platform_change_requires_run', async (stage) => {
      const { shareToken } = await makeShare(stage)
      const { runId, token } = await stage.caller()
      const between = () => stage.endRun(runId)
      const request = { method: 'POST', body: installed(stage), token, between }
      return halfRequest(stage.server, `/skills/shared/${shareToken}/install`, request)
    }),
    on('skills.shared.install', '503 skill_bundle_storage_failed', (stage) =>
      withoutSkillStorage(stage, (server, { shareToken }) =>
        server.call(`/skills/shared/${shareToken}/install`, post(installed(server))),
      ),
    ),
    ...ofSkillRoutes('404 skill_not_found', () => Promise.resolve('0000000000000000'), shareRoutesBelow),
    ...ofSkillRoutes('409 ambiguous_skill_ref', ambiguousSkill, shareRoutesBelow),
    ...ofSkillRoutes('409 skill_share_forbidden', async (stage) => (await makePluginSkill(stage)).id, ['skills.share']),
    on('skills.shares.revoke', '404 share_not_found', async (stage) =>
      stage.server.call(`/skills/${(await makeSkill(stage)).id}/shares/shr_0000000000000000`, { method: 'DELETE' }),
    ),
  ],
  withoutCommand: {
    'skills.shares.list': 'The documents show no command.',
    'skills.shares.revoke': 'The documents show no command.',
    'skills.shared.preview': 'The link is for a browser.',
    'skills.shared.install': 'The documents show no command.',
  },
  unknownIds: { shareId: 'shr_0000000000000000', shareToken: unknownToken },
  async things({ server, person: { token } }) {
    const { shareId, shareToken } = await makeShare({ server }, { token })
    return { shareId, shareToken }
  },
  bearerIds: ['shareToken'],
  nothingToRead: {
    'skills.shared.preview': 'Whoever knows the token of a link sees the skill, so that nobody is given one.',
  },
  within: [
    [
      'skills.shares.revoke',
      'DELETE',
      async (stage, ids) => ({ path: `/skills/${(await makeSkill(stage)).id}/shares/${ids['shareId']}` }),
    ],
  ],
  sharp: ['skills.shared.install'],
}
