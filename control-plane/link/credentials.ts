import type { ConnectionId } from '../../shared/lib/ids.ts'
import type { CredentialAnswer } from '../../shared/device/credential.ts'
import type { DeviceMessage } from '../../shared/device/protocol.ts'
import { findAgent, type AgentRow } from '../resources/agents/store.ts'
import { ConnectionUnusable } from '../resources/connections/for-runs.ts'
import { adviceFor, credentialForServers, variablesForRun, type SpecOwner } from '../resources/connections/for-specs.ts'
import type { RenewalDependencies } from '../resources/connections/renewal.ts'
import { placeOfEnvironment } from '../run/places/places.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import { listAdmins } from '../resources/members/store.ts'
import { listSpecs } from '../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../resources/runs/store.ts'
import type { Link } from './registry.ts'

export const credentialLimits = {
  /** Requests of one device that are being answered. */
  open: 200,
  /** Requests in a minute of one run, and of all runs of one device. */
  ofRun: 120,
  ofDevice: 1_200,
} as const
const minuteMs = 60_000

type Request = DeviceMessage & { type: 'credential.get' }
type Asker = Pick<Link, 'publicId' | 'workspaceId' | 'send'>

interface Asked {
  open: Set<string>
  since: number
  count: number
  ofRuns: Map<string, number>
}

/**
 * Answers devices that ask for the credential of a connection for a run. A device gets it for runs that it holds, of connections that
 * stand in the run's spec and that the agent's owner may use. It never asks by the run's token, which the agent has.
 */
export class CredentialRequests {
  private readonly deps: RenewalDependencies
  private readonly asked = new WeakMap<Asker, Asked>()

  constructor(deps: RenewalDependencies) {
    this.deps = deps
  }

  /** Returns at once: a provider that is slow must not hold up what the device says next. */
  receive(link: Asker, request: Request): void {
    const { requestId, runId, fence } = request
    const asked = this.countOf(link)
    // The device asks again while it waits.
    if (asked.open.has(requestId)) return
    const answer = (said: CredentialAnswer) =>
      void link.send({ type: 'credential', requestId, runId, fence, answer: said })
    const ofRun = (asked.ofRuns.get(runId) ?? 0) + 1
    const isTooMuch = ofRun > credentialLimits.ofRun || ++asked.count > credentialLimits.ofDevice
    if (isTooMuch || asked.open.size >= credentialLimits.open)
      return answer(no('It was asked for too often. Try again in a minute.'))
    asked.ofRuns.set(runId, ofRun)
    asked.open.add(requestId)
    this.answerTo(link, request)
      .catch((error: unknown) => {
        if (error instanceof ConnectionUnusable) return no(adviceFor(error, request.connectionId))
        this.deps.log.error({ err: error, runId }, 'a credential could not be given to a run')
        return no('svc could not read it.')
      })
      .then(answer)
      .finally(() => asked.open.delete(requestId))
      .catch((error: unknown) => this.deps.log.warn({ err: error, runId }, 'an answer about a credential was not sent'))
  }

  private countOf(link: Asker): Asked {
    const now = this.deps.world.monotonic()
    let asked = this.asked.get(link)
    if (asked === undefined)
      this.asked.set(link, (asked = { open: new Set(), since: now, count: 0, ofRuns: new Map() }))
    if (now - asked.since >= minuteMs) Object.assign(asked, { since: now, count: 0, ofRuns: new Map() })
    return asked
  }

  private async answerTo(
    link: Asker,
    { runId, fence, connectionId, refusedVersion, isForEnv }: Request,
  ): Promise<CredentialAnswer> {
    const { root } = this.deps
    const heldRun = async (): Promise<RunRow | null> => {
      const run = await findRun(root, runId)
      const isHeld = run?.device === link.publicId && run.fence === fence && run.workspaceId === link.workspaceId
      return isHeld && run.leaseState === 'claimed' && run.endedAt === null ? run : null
    }
    const run = await heldRun()
    if (run === null) return no('This device does not hold the run any more.')
    const { whyNoCredentials } = placeOfEnvironment(run.environmentType)
    if (whyNoCredentials !== null) return no(whyNoCredentials)
    const spec = (await listSpecs(root, [runId])).get(runId)
    const agent = await findAgent(root, run.agentRef)
    if (spec === undefined || agent === null) return no('The run was not given this connection.')
    const of = { spec, agent }
    const isKept = isForEnv === true ? await this.whyNoVariables(run, agent) : null
    if (isKept !== null) return no(isKept)
    const answer = await this.credentialOf(of, {
      connectionId,
      refused: refusedVersion ?? null,
      isForEnv: isForEnv === true,
    })
    return (await heldRun()) === null ? no('The run is over.') : answer
  }

  private async credentialOf(
    of: SpecOwner,
    { connectionId, refused, isForEnv }: { connectionId: ConnectionId; refused: number | null; isForEnv: boolean },
  ): Promise<CredentialAnswer> {
    if (isForEnv) {
      const given = await variablesForRun(this.deps, of, connectionId)
      return { ok: true, headers: {}, values: [], ...given, expiresInMs: null }
    }
    const used = await credentialForServers(this.deps, of, { connectionId, refused })
    const { headers, values, credentialVersion: version, expiresAt } = used
    const expiresInMs = expiresAt === null ? null : Math.max(0, expiresAt - this.deps.world.now())
    return { ok: true, headers, values, version, expiresInMs }
  }

  /**
   * Returns why the run gets no variables of connections; null: it gets them. They go where secrets may go: to devices of the agent's
   * owner and of workspace admins. Unlike with secrets, which somebody granted to this agent, a run goes elsewhere, too, and does without.
   */
  private async whyNoVariables({ workspaceId, device: publicId }: RunRow, agent: AgentRow): Promise<string | null> {
    const { root } = this.deps
    const device = publicId === null ? null : await findDeviceByPublicId(root, publicId)
    const mayHave = new Set([agent.ownerUuid, ...(await listAdmins(root, workspaceId))])
    if (device !== null && mayHave.has(device.personUuid)) return null
    return "Variables of connections go to devices of the agent's owner and of workspace admins alone."
  }
}

const no = (message: string): CredentialAnswer => ({ ok: false, message: message.slice(0, 1_000) })
