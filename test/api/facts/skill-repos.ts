import fc from 'fast-check'
import { halfRequest } from '../../kit/half-request.ts'
import type { Stage } from '../contract/stage.ts'
import { on, post } from './kit/recipe.ts'
import type { ResourceFacts } from './kit/resource-facts.ts'
import { withoutSkillStorage } from './kit/skill-codes.ts'
import { newSlug, skillMd } from './kit/skills.ts'

const id = 'skills.installFromRepo'
const install = ({ workspaceId }: { workspaceId: string }) => `/companies/${workspaceId}/skills/install-from-repo`

/** The address of a new repository with one skill. */
async function aRepo(stage: Stage): Promise<string> {
  const git = await stage.gitServer()
  const name = `${newSlug()}.git`
  git.repo(name).commit({ skills: { [newSlug()]: { 'SKILL.md': skillMd() } } })
  return `${git.url}/${name}`
}

export const skillRepoFacts: ResourceFacts = {
  requests: {
    [id]: async (stage) => ({ params: { workspaceId: stage.owner.workspaceId }, body: { url: await aRepo(stage) } }),
  },
  codes: [
    on(id, '400 invalid_skill_source', ({ server, owner }) =>
      server.call(install(owner), post({ url: 'ext::sh -c true' })),
    ),
    on(id, '400 skill_source_unreadable', async (stage) =>
      stage.server.call(install(stage.owner), post({ url: await aRepo(stage), ref: 'none' })),
    ),
    on(id, '404 no_skills_found', async (stage) =>
      stage.server.call(install(stage.owner), post({ url: await aRepo(stage), skills: ['none'] })),
    ),
    on(id, '403 platform_change_requires_run', async (stage) => {
      const { runId, token } = await stage.caller()
      const request = { body: { url: await aRepo(stage) }, token, between: () => stage.endRun(runId) }
      return halfRequest(stage.server, install(stage.owner), request)
    }),
    on(id, '503 skill_bundle_storage_failed', async (stage) => {
      const url = await aRepo(stage)
      return withoutSkillStorage(stage, (server) => server.call(install(server.owner), post({ url })))
    }),
  ],
  named: { url: fc.constantFrom('https://127.0.0.1/x.git', 'ext::sh -c "touch x"', 'file:///etc') },
  sharp: [id],
}
