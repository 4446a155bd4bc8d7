import type {
  CatalogService,
  Connection,
  ConnectionSetup,
  ConnectionSummary,
} from '../../../../shared/api/connection-fields.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Service } from '../../../catalog/services.ts'
import { reasonOfLapse, statusAt } from '../rules.ts'
import type { ConnectionRow } from '../store.ts'

/** A workspace or a person, as the owner of a connection. */
export type Owner = ConnectionSummary['owner']

export function presentConnection(
  row: ConnectionRow,
  { owner, now }: { owner: Owner; now: number },
): ConnectionSummary {
  const status = statusAt(row, now)
  return {
    object: 'connection',
    id: row.id,
    integration: { id: row.serviceId, label: row.serviceLabel, authKind: row.authKind },
    owner,
    accountLabel: row.accountLabel,
    status,
    statusReason: status === row.status ? row.statusReason : reasonOfLapse(row),
    grantedScopes: row.grantedScopes,
    lastUsedAt: row.lastUsedAt === 0 ? null : toTimestamp(row.lastUsedAt),
    createdAt: toTimestamp(row.createdAt),
    updatedAt: toTimestamp(row.updatedAt),
  }
}

/** `service` null: it is in the catalog no more. */
export function presentWhole(
  row: ConnectionRow,
  { owner, now, service }: { owner: Owner; now: number; service: Service | null },
): Connection {
  return {
    ...presentConnection(row, { owner, now }),
    auth: { kind: row.authKind, expiresAt: toTimestamp(row.expiresAt), fieldNames: row.fieldNames },
    availableSurfaces: [...(service?.surfaces ?? [])],
    runtimeDelivery: { local: 'device_injection', cloud: 'network_broker' },
  }
}

const shownFields = ({ fields = [] }: Service) => fields.map(({ name, label, required }) => ({ name, label, required }))

export const presentService = (service: Service): CatalogService => ({
  object: 'service',
  id: service.id,
  label: service.label,
  description: service.description ?? null,
  authKind: service.authKind,
  adminOnly: service.adminOnly ?? false,
  surfaces: service.surfaces,
  scopes: service.scopes ?? [],
  fields: shownFields(service),
  isReady: isReady(service),
})

/** The next step of a setup; `shown` undefined: there is no connection yet. */
export type NextStep = ConnectionSetup['nextStep']

export const presentSetup = (nextStep: NextStep, shown: ConnectionSummary | undefined): ConnectionSetup => ({
  object: 'connection_setup_result',
  status: nextStep.kind === 'none' ? 'connected' : 'human_required',
  nextStep,
  ...(shown !== undefined && { connection: shown }),
})

export const askForFields = (service: Service): NextStep => ({ kind: 'api_key_fields', fields: shownFields(service) })

/** Returns whether somebody can connect to the service now. */
function isReady({ authKind, oauth }: Service): boolean {
  return authKind !== 'oauth' || oauth?.clientId !== undefined
}
