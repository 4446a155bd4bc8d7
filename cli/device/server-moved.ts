import { createHash } from 'node:crypto'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'
import { nonceBytes, serverProof } from '../../shared/device/server-proof.ts'
import type { World } from '../../shared/lib/world.ts'
import { ApiFailure, CliError } from '../errors/cli-error.ts'
import type { Client } from '../calls/client.ts'
import { readIfThere } from '../machine/files.ts'
import type { DevicePlaces } from '../machine/paths.ts'
import { writePrivately } from '../machine/private-file.ts'
import { listAt } from '../replies/fields.ts'

// Follows the device's server to another address, once what answers there has proved to be that server.

/**
 * Keeps the address of the login as that of the device's server. The device's token is not sent there before the proof, and the question is
 * asked with the person's login: what only passes it on to the true server has none that is good there.
 */
export async function followServer(
  client: Client,
  { places, known, world }: { places: DevicePlaces; known: DeviceIdentity; world: Pick<World, 'bytes'> },
): Promise<DeviceIdentity> {
  const { server } = client.caller
  const nonce = Buffer.from(world.bytes(nonceBytes)).toString('hex')
  const question = { publicId: known.publicId, nonce }
  const token = readIfThere(places.token)?.trim() ?? ''
  if (token === '') throw otherServer(server, known.server)
  const expected = await serverProof(createHash('sha256').update(token).digest('hex'), question)
  if (!(await proofsOf(client, question)).includes(expected)) throw otherServer(server, known.server)
  const moved = { ...known, server }
  await writePrivately(places.identity, `${JSON.stringify(moved, null, 2)}\n`)
  return moved
}

/** Empty where the server knows no such device of the person, or is too old to be asked. */
async function proofsOf(client: Client, question: { publicId: string; nonce: string }): Promise<readonly unknown[]> {
  try {
    const { body } = await client.call({ method: 'POST', path: '/api/device/proof', body: question })
    return listAt(body, 'proofs')
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return []
    throw error
  }
}

function otherServer(login: string, device: string): CliError {
  return new CliError(
    'device_of_another_server',
    `This machine is a device of ${device}. You are signed in to ${login}, which does not know this device.`,
    {
      remediation:
        'Type `svc device disconnect` first, or `svc device disconnect --local` where the other server is gone, or give this device another folder with SVC_STATE_DIR.',
    },
  )
}
