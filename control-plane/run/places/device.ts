import { agentConnectionVariables } from '../../resources/connections/agent-connections.ts'
import { secretsForRun } from '../../resources/secrets/store.ts'
import { isRefusedByDevices, placeOnDevice } from './device-rules.ts'
import { keyOf } from './model-access.ts'
import type { RunPlace } from './place.ts'

/** A machine of a person: it has folders, its own sign-ins and its owner's choice of whose work it takes. */
export const devicePlace: RunPlace = {
  hasFolders: true,
  hasFallback: true,
  canGrow: false,
  showsDevice: true,
  cwd: 'home',
  paidBy: 'subscription',
  exchangesFirstToken: false,
  whyNoCredentials: null,
  madeForRun: () => null,
  placeRun: placeOnDevice,
  isRefused: isRefusedByDevices,
  isBeingMade: () => false,
  whyClosed: () => null,
  limited: (spec) => spec,
  listGuardedSecrets: async () => null,
  keyedSpec: (spec, { secretKeys }) => ({
    spec,
    keyId: keyOf(spec.harness, secretKeys),
    secretNames: { given: [...secretKeys.keys()], leftOut: [] },
  }),
  connectionVariables: agentConnectionVariables,
  offeredSpec: (spec) => spec,
  secretsFor: (db, run, { vault }) => secretsForRun(db, run, vault),
  trusted: ({ runsBy, personUuid }, admins) => ({ isSandbox: false, runsBy, isOfAdmin: admins.has(personUuid) }),
  findContainer: async () => null,
  howLost: async () => ({ exitReason: 'runner_lost', errorMessage: 'The device came back without this run.' }),
}
