import type { PersonUuid, SecretId } from '../../../../shared/lib/ids.ts'
import { effectivePermissions } from '../../../../shared/runs/spec.ts'
import { mcpServersFor } from '../../../../shared/runs/run-mcp-servers.ts'
import { harnesses, type HarnessName } from '../../../../shared/runs/harnesses.ts'
import type { AgentWarning } from '../../../../shared/api/agents.ts'
import { goesThroughBroker } from '../../../../shared/runs/filled-servers.ts'
import type { McpServers } from '../../../../shared/runs/mcp-servers.ts'
import type { Db } from '../../../db/open.ts'
import { type ModelCatalog, chooseHarness } from '../../../catalog/catalog.ts'
import type { ServiceCatalog } from '../../../catalog/services.ts'
import { isAgentBudgetSpent } from '../../agents/budget.ts'
import { isController, livenessOf } from '../../devices/rules.ts'
import { listDevicesOfWorkspace, type DeviceRow } from '../../devices/store.ts'
import { findFolder, type FolderRow } from '../../folders/store.ts'
import { connectionsOfAgent, type AgentConnection } from '../../connections/agent-connections.ts'
import { statusAt } from '../../connections/rules.ts'
import { findConnection } from '../../connections/store.ts'
import { mcpServersOfAgent } from '../../connections/joined-servers.ts'
import { whyNotInCloud } from '../../mcp-servers/in-cloud.ts'
import { listAdmins } from '../../members/store.ts'
import { troubleInSandbox, type CloudSecret } from '../../secrets/in-cloud.ts'
import { listSecretKeys } from '../../secrets/store.ts'
import { skillsOfSpec } from '../../skills/offered.ts'
import { skillsHadBy } from '../../skills/had.ts'
import { refusalOfSkill, takesWork, type Work } from '../../../trust/rules.ts'
import { modelAccess } from '../../../run/places/model-access.ts'
import { placeOfEnvironment } from '../../../run/places/places.ts'
import type { CloudSetup } from '../../dependencies.ts'
import type { WorkspaceRow } from '../../workspaces/store.ts'
import { type CloudFacts, diagnose, type DoctorDevice, type RefusedPart } from './own/doctor.ts'
import type { DoctorSkill } from './own/run-input-warnings.ts'
import { findAgentByReference, type AgentRow } from '../../agents/store.ts'

/** Runs the agent doctor on a stored agent. */
export async function auditAgent(
  db: Db,
  subject: { agent: AgentRow; workspace: WorkspaceRow },
  options: {
    now: number
    leaseMs: number
    cloud: CloudSetup | null
    catalog: ModelCatalog
    services: ServiceCatalog
  },
): Promise<AgentWarning[]> {
  const { agent, workspace } = subject
  const model = agent.model ?? workspace.defaultModel
  const backupModel = agent.backupModel ?? workspace.backupModel
  const folder = agent.defaultFolderId === null ? null : await findFolder(db, agent.workspaceId, agent.defaultFolderId)
  const devices = await listDevicesOfWorkspace(db, agent.workspaceId)
  const manager =
    agent.reportingToUuid === null ? null : await findAgentByReference(db, agent.workspaceId, agent.reportingToUuid)
  const harness = chooseHarness(agent.harness, model, options.catalog)
  const secretKeys = await listSecretKeys(db, agent.id)
  const place = placeOfEnvironment(agent.environment)
  const cloudSecrets = await place.listGuardedSecrets(db, agent.id)
  const work = {
    agent,
    isConfidential: agent.visibility === 'private' || secretKeys.size > 0,
    admins: new Set(await listAdmins(db, agent.workspaceId)),
  }
  const mayRun = devices.filter((device) => mayTake(device, { agent, folder, workspace }))
  const permissions = effectivePermissions({ ...agent.tools, defaultMode: agent.toolPermissionMode }, workspace)
  const connections = await connectionsOfAgent(db, agent, options)
  const mcpServers = await mcpServersOfAgent(db, agent, { workspace, connections: connections.given })
  const servers = mcpServersFor(mcpServers, { harness, protocol: agent.protocol, permissions })
  const { leftOut: variablesLeftOut } = place.connectionVariables(connections.given, {
    secrets: new Set(secretKeys.keys()),
    harnessKeys: harnesses[harness].keyNames,
  })
  return diagnose({
    agent,
    harness,
    model: model === null ? null : { name: model, entry: options.catalog.find(model) },
    backupModel: backupModel === null ? null : { name: backupModel, entry: options.catalog.find(backupModel) },
    isBudgetSpent: isAgentBudgetSpent(agent, options.now),
    cloud: cloudFacts(subject, {
      setup: options.cloud,
      harness,
      secretKeys,
      cloudSecrets: cloudSecrets ?? [],
      model,
      servers: servers.given,
    }),
    folder: agent.defaultFolderId === null ? null : (folder ?? 'missing'),
    devices: mayRun.map((device) => ({ ...toDoctorDevice(device, options), refuses: refusedBy(device, work) })),
    manager:
      agent.reportingToUuid === null ? null : manager === null || manager.deletedAt !== null ? 'missing' : 'present',
    permissionMode: permissions.defaultMode,
    mcpLeftOut: servers.leftOut,
    mcpInVain: await inVain(db, {
      agent,
      servers: servers.given,
      cloudSecrets,
      usable: [...connections.given, ...connections.refused],
      now: options.now,
    }),
    connectionsRefused: connections.refused.map(({ row }) => row.serviceLabel),
    variablesLeftOut,
    skillsLeftOut: await skillsLeftOut(db, { ...work, harness, devices: mayRun }),
  })
}

function cloudFacts(
  { agent, workspace }: { agent: AgentRow; workspace: WorkspaceRow },
  {
    setup,
    harness,
    model,
    secretKeys,
    cloudSecrets,
    servers,
  }: {
    setup: CloudSetup | null
    harness: HarnessName
    model: string | null
    secretKeys: ReadonlyMap<string, SecretId>
    cloudSecrets: readonly CloudSecret[]
    servers: McpServers
  },
): CloudFacts | null {
  if (setup === null) return null
  const access = modelAccess({ harness, model, gate: null }, { secretKeys, operatorKeys: setup.operatorKeys })
  const message = troubleInSandbox(cloudSecrets, {
    harness,
    brokeredModel: access.kind === 'brokered' ? access.model : null,
    mcpServers: servers,
  })
  const secretTrouble = message === null ? null : { code: 'credential_unbrokerable', message }
  return {
    isOnInWorkspace: workspace.cloudEnabled,
    size: setup.describeSize(agent.sandboxSize ?? workspace.sandboxSize ?? 'small'),
    image: setup.image,
    keyTrouble: access.kind === 'refused' ? access : secretTrouble,
  }
}

/** `usable`: the connections that work and that the owner of the agent may use. */
async function inVain(
  db: Db,
  {
    agent,
    servers,
    cloudSecrets,
    usable,
    now,
  }: {
    agent: AgentRow
    servers: McpServers
    /** null: its runs are on devices. */
    cloudSecrets: readonly CloudSecret[] | null
    usable: readonly AgentConnection[]
    now: number
  },
): Promise<{ name: string; why: string }[]> {
  const works = new Set(usable.map(({ row }) => row.id))
  const found: { name: string; why: string }[] = []
  for (const [name, server] of Object.entries(servers)) {
    const inCloud = cloudSecrets !== null && goesThroughBroker(server) ? whyNotInCloud(server, cloudSecrets) : null
    if (inCloud !== null) {
      found.push({ name, why: inCloud })
      continue
    }
    const id = server.type === 'stdio' ? undefined : server.connectionId
    if (id === undefined || works.has(id)) continue
    const row = await findConnection(db, agent.workspaceId, id)
    if (row === null) found.push({ name, why: 'its connection is gone' })
    else if (row.ownerUuid !== null && row.ownerUuid !== agent.ownerUuid)
      found.push({ name, why: "its connection is a person's own, who does not own the agent; connect the workspace" })
    else if (statusAt(row, now) !== 'active')
      found.push({
        name,
        why: `the connection to ${row.serviceLabel} is ${statusAt(row, now)} (svc connection reauthorize ${id})`,
      })
  }
  return found
}

/** Lists the agent's skills that stay behind, as far as that is known before a run. */
async function skillsLeftOut(
  db: Db,
  {
    agent,
    harness,
    devices,
    admins,
  }: { agent: AgentRow; harness: HarnessName; devices: readonly DeviceRow[]; admins: ReadonlySet<PersonUuid> },
): Promise<DoctorSkill[]> {
  const { ownerUuid, protocol } = agent
  const found = await skillsHadBy(db, agent)
  const { skills, skillsLeftOut: leftOut } = skillsOfSpec(found, { harness, protocol })
  const missed = new Map(found.skills.map(({ slug, unavailableReason }) => [slug, unavailableReason]))
  const reader = { agent: { ownerUuid, isPrivate: agent.visibility === 'private' }, admins }
  const judged = (skills ?? []).flatMap(({ slug, writtenBy: writers = [] }): DoctorSkill[] => {
    const refused = (host: DeviceRow | null) =>
      refusalOfSkill(writers, { host: host && { ...host, isOfAdmin: admins.has(host.personUuid) }, ...reader })
    const everywhere = refused(null) ?? missed.get(slug) ?? null
    if (everywhere !== null) return [{ slug, reason: everywhere, device: null }]
    return devices.flatMap((device) => {
      const reason = refused(device)
      return reason === null ? [] : [{ slug, reason, device: device.displayName }]
    })
  })
  return [...(leftOut ?? []).map((skill) => ({ ...skill, device: null })), ...judged]
}

function mayTake(
  device: DeviceRow,
  { agent, folder, workspace }: { agent: AgentRow; folder: FolderRow | null; workspace: WorkspaceRow },
): boolean {
  if (folder !== null) return device.publicId === folder.device
  if (isController(device.platform)) return false
  return device.publicId === workspace.defaultDevice || device.personUuid === agent.ownerUuid
}

/** Lists the parts of the agent that keep all its runs from the device, whoever asks for them. */
function refusedBy(
  { personUuid, runsBy }: DeviceRow,
  { agent, isConfidential, admins }: { agent: AgentRow; isConfidential: boolean; admins: ReadonlySet<PersonUuid> },
): RefusedPart[] {
  const host = { personUuid, runsBy, isOfAdmin: admins.has(personUuid) }
  const own: Work = { causedByUuid: personUuid, wordsBy: [], programBy: personUuid, isConfidential: false }
  const isTaken = (work: Partial<Work>) => takesWork(host, { ...own, ...work }, admins)
  const instructions = agent.agentMd.trim() === '' ? [] : [agent.agentMdByUuid]
  const isKept = isConfidential && !host.isOfAdmin && personUuid !== agent.ownerUuid
  return [
    ...(isTaken({ programBy: agent.ownerUuid }) ? [] : (['program'] as const)),
    ...(isTaken({ wordsBy: instructions }) ? [] : (['instructions'] as const)),
    ...(isKept ? (['confidential'] as const) : []),
  ]
}

function toDoctorDevice(device: DeviceRow, options: { now: number; leaseMs: number }): Omit<DoctorDevice, 'refuses'> {
  const { providerReadiness } = device
  return {
    displayName: device.displayName,
    liveness: livenessOf(device, options.now, options.leaseMs),
    runsBy: device.runsBy,
    readiness: 'harnesses' in providerReadiness ? providerReadiness.harnesses : null,
    isolation: 'isolation' in providerReadiness ? providerReadiness.isolation : null,
  }
}
