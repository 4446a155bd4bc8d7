import fc from 'fast-check'
import { enrol } from '../../kit/fake-device.ts'
import { on, patch, plain } from './kit/recipe.ts'
import type { Recipe, ResourceFacts } from './kit/resource-facts.ts'

const aDevice: Recipe = async (stage) => ({ params: { id: (await stage.enrolled()).deviceId } })

export const deviceFacts: ResourceFacts = {
  requests: {
    'devices.list': plain,
    'devices.update': async (stage) => ({ ...(await aDevice(stage)), body: { maxConcurrentRuns: 2 } }),
    'devices.delete': aDevice,
  },
  codes: [
    on('devices.update', '403 remote_access_forbidden', async (stage) => {
      const { deviceId } = await stage.enrolled()
      return stage.server.call(`/devices/${deviceId}`, patch({ remoteControlRevoked: true }, stage.admin.token))
    }),
    on('devices.update', '404 device_not_found', ({ server }) =>
      server.call(`/devices/${crypto.randomUUID()}`, patch({ remoteControlRevoked: true })),
    ),
    on('devices.update', '404 resource_not_found', ({ server }) =>
      server.call(`/devices/${crypto.randomUUID()}`, patch({ isWorkspaceDefault: true })),
    ),
    on('devices.update', '400 invalid_id_format', ({ server, device }) =>
      server.call(`/devices/${device.identity.publicId}`, patch({ displayName: 'x' })),
    ),
    on('devices.delete', '400 invalid_id_format', ({ server, device }) =>
      server.call(`/devices/${device.identity.publicId}`, { method: 'DELETE' }),
    ),
  ],
  plainErrors: {
    'plain.device_not_found': ({ send }) => send({ params: { id: crypto.randomUUID() } }),
    'plain.device_not_owned': ({ stage, send }) => send({ token: stage.admin.token }),
  },

  unknownIds: { id: '00000000-0000-4000-8000-000000000009', deviceId: 'dvc_0000000000000000' },
  things: async ({ server, person }) => {
    const { deviceId, publicId } = await enrol(server, { token: person.token })
    return { id: deviceId, deviceId: publicId }
  },
  hostile: { runsBy: fc.constantFrom('owner', 'members') },
  sharp: ['devices.update', 'devices.delete'],
}
