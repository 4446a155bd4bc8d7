import { z } from 'zod'
import { connectionRoutes } from '../../../../shared/api/connections.ts'
import { connectionId } from '../../../../shared/api/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { cursorOf, pageOf } from '../../../../shared/api/paging.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import {
  type BeforeInput,
  type HandlerInput,
  implement,
  type ImplementedRoute,
  prepared,
} from '../../../http/implement.ts'
import { wholeList } from '../../../http/whole-list.ts'
import { lookUpConnection, ownersOf, viewerOfConnections } from '../lookup.ts'
import { presentConnection, presentService, presentWhole } from '../own/present.ts'
import { sortKeyOf } from '../order.ts'
import { statusAt } from '../rules.ts'
import { findService } from '../service-of.ts'
import { blankConnection, withdraw } from '../steps/change.ts'
import { attachAgain } from '../steps/server-sign-in.ts'
import { countConnections, findSameConnection, listConnections } from '../store.ts'
import { releaseWithdrawn, withdrawAtProvider, type Withdrawn } from './revoke.ts'
import { prepareStep, shownSetup, takeStep, type SetupDependencies, type Step } from './setup.ts'
import { findTarget, type Target } from './target.ts'

type Dependencies = SetupDependencies
type Routes = typeof connectionRoutes

export function connectionHandlers(deps: Dependencies): ImplementedRoute[] {
  const { services } = deps
  return implement(connectionRoutes, {
    catalog: () => Promise.resolve(wholeList(services.list().map(presentService))),

    list,

    create: prepared<Routes['create'], Step | null>({
      before: (input) => prepareCreate(input, deps),
      handle: (input, step) => create(input, step, deps),
    }),

    async get({ db, caller, params, world }) {
      const row = await lookUpConnection(db, caller, params.id)
      const owner = (await ownersOf(db, [row]))(row)
      return presentWhole(row, { owner, now: world.now(), service: await findService({ db, services }, row) })
    },

    revoke: prepared<Routes['revoke'], Withdrawn | null>({
      before: (input) => withdrawAtProvider(input, deps),
      handle: revoke,
      giveUp: (withdrawn) => releaseWithdrawn(withdrawn, deps),
    }),

    reauthorize: prepared<Routes['reauthorize'], Step>({
      before: (input) => prepareReauthorize(input, deps),
      handle: (input, step) => reauthorize(input, step, deps),
    }),
  })
}

/** A list of another order gives out other cursors. */
const cursorsOf = (sort: string) =>
  z.tuple([
    z.literal(sort),
    sort === 'label_asc'
      ? z
          .string()
          .max(1_000)
          .regex(/^[^\0]*$/)
      : z.number().int().nonnegative(),
    connectionId,
  ])

async function list({ db, caller, query, world }: HandlerInput<Routes['list']>) {
  const { sort, limit, integration, status, q } = query
  const now = world.now()
  const place = cursorOf(query, cursorsOf(sort))
  const { workspaceId } = caller
  const visibleTo = viewerOfConnections(caller)
  const filter = { workspaceId, visibleTo, now, ...withoutUndefined({ serviceId: integration, status, q }) }
  const after = place === null ? {} : { after: [place[1], place[2]] as const }
  const rows = await listConnections(db, { ...filter, sort, limit, ...after })
  const ownerOf = await ownersOf(db, rows)
  const page = pageOf({
    rows,
    limit,
    keyOf: (row) => [sort, ...sortKeyOf(sort, row)],
    present: (row) => presentConnection(row, { owner: ownerOf(row), now }),
  })
  return { ...page, returnedCount: page.data.length, totalCount: await countConnections(db, filter) }
}

type Creating = BeforeInput<Routes['create']>

const targetOf = async ({ db, caller, body: { integrationId, integration } }: Creating, { services }: Dependencies) =>
  (await findTarget({ db, caller, services }, integrationId ?? integration!)) ?? fail('integration_not_found')

const sameAs = ({ db, caller: { workspaceId }, body: { accountLabel } }: Creating, { service, ownerUuid }: Target) =>
  findSameConnection(db, { workspaceId, serviceId: service.id, ownerUuid, accountLabel })

/** null: there is an active one, which is answered as it is. */
async function prepareCreate(input: Creating, deps: Dependencies): Promise<Step | null> {
  const target = await targetOf(input, deps)
  const before = await sameAs(input, target)
  if (before !== null && statusAt(before, input.world.now()) === 'active') return null
  return prepareStep(target.service, input.body.apiKeyFields, { deps, before, input })
}

async function create(input: HandlerInput<Routes['create']>, step: Step | null, deps: Dependencies) {
  const { db, caller, body, world } = input
  const target = await targetOf(input, deps)
  const { service, ownerUuid } = target
  const before = await sameAs(input, target)
  const isActive = before !== null && statusAt(before, world.now()) === 'active'
  if (isActive) {
    await attachAgain(db, before, world)
    return shownSetup(input, { row: before, nextStep: { kind: 'none' } })
  }
  // The connection was active when it was looked at, and is not any more.
  if (step === null) return fail('transient_conflict')
  const { workspaceId, personUuid: createdByUuid } = caller
  const { accountLabel } = body
  const of = { id: world.id('conn_'), workspaceId, ownerUuid, accountLabel, createdByUuid, now: world.now() }
  return takeStep(input, { step, before, blank: blankConnection(service, of) }, deps)
}

type Reauthorizing = BeforeInput<Routes['reauthorize']>

/** The connection and its service. Fails with `connection_not_reauthorizable` when it works, or a sign-in is open. */
async function reauthorizable({ db, caller, params, world }: Reauthorizing, { services }: Dependencies) {
  const row = await lookUpConnection(db, caller, params.id)
  const target = await findTarget({ db, caller, services }, row.serviceId)
  if (target === null || target.service.authKind !== row.authKind || target.ownerUuid !== row.ownerUuid)
    return fail('unsupported_auth_kind', { message: 'There is no such service any more as it was connected to.' })
  const { service } = target
  const status = statusAt(row, world.now())
  if (status === 'pending' || status === 'active') fail('connection_not_reauthorizable', { details: { status } })
  return { row, service }
}

async function prepareReauthorize(input: Reauthorizing, deps: Dependencies): Promise<Step> {
  const { row, service } = await reauthorizable(input, deps)
  return prepareStep(service, input.body.apiKeyFields, { deps, before: row, input })
}

async function reauthorize(input: HandlerInput<Routes['reauthorize']>, step: Step, deps: Dependencies) {
  const { row } = await reauthorizable(input, deps)
  return takeStep(input, { step, before: row, blank: row }, deps)
}

async function revoke({ db, caller, params, world, log }: HandlerInput<Routes['revoke']>, withdrawn: Withdrawn | null) {
  const row = await lookUpConnection(db, caller, params.id)
  // The credential that was withdrawn at the provider is not the one that is there now.
  if (withdrawn !== null && withdrawn.credentialVersion !== row.credentialVersion) fail('transient_conflict')
  const by = caller.kind === 'person' ? caller.name : 'An agent'
  await withdraw({ tx: db, world }, { row, event: 'withdraw', reason: `${by} revoked it.` })
  log.info({ connectionId: row.id, service: row.serviceId }, 'connection revoked')
}
