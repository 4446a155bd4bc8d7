import { insertSandbox, type SandboxRow } from '../../../control-plane/resources/sandboxes/store.ts'
import { startEngineless } from '../../kit/engineless.ts'
import type { Person, TestServer } from '../../kit/server.ts'
import { sandboxRow } from '../../store/sandbox-rows.ts'
import { on, plain } from './kit/recipe.ts'
import type { CodeRecipe, Recipe, ResourceFacts } from './kit/resource-facts.ts'

const unknown = 'sbx_0000000000000000'

/** As the server writes it for a run that is to have one. */
async function makeSandbox(
  server: TestServer,
  { workspaceId }: Pick<Person, 'workspaceId'>,
  change: Partial<SandboxRow> = {},
) {
  const row = sandboxRow(workspaceId, { createdAt: server.world.now(), ...change })
  await insertSandbox(server.database.root, row)
  return row.id
}

const aSandbox: Recipe = async ({ server }) => ({ params: { sandboxId: await makeSandbox(server, server.owner) } })

const below = { logs: 'GET', stop: 'POST' } as const

const codesOf = (what: keyof typeof below): CodeRecipe[] => [
  on(`sandboxes.${what}`, '404 sandbox_not_found', ({ server }) =>
    server.call(`/sandboxes/${unknown}/${what}`, { method: below[what] }),
  ),
  on(`sandboxes.${what}`, '409 sandbox_gone', async ({ server }) => {
    const id = await makeSandbox(server, server.owner, { state: 'ended', removedAt: server.world.now() })
    return server.call(`/sandboxes/${id}/${what}`, { method: below[what] })
  }),
]

export const sandboxFacts: ResourceFacts = {
  requests: { 'sandboxes.list': plain, 'sandboxes.logs': aSandbox, 'sandboxes.stop': aSandbox },
  codes: [
    ...codesOf('logs'),
    ...codesOf('stop'),
    on('sandboxes.logs', '503 sandbox_engine_unavailable', async (stage) => {
      const server = await stage.other('without an engine', () => startEngineless())
      const id = await makeSandbox(server, server.owner, { state: 'linked', folder: '/run/svc' })
      return server.call(`/sandboxes/${id}/logs`)
    }),
  ],
  unknownIds: { sandboxId: unknown },
  things: async ({ server, person }) => ({ sandboxId: await makeSandbox(server, person) }),
}
