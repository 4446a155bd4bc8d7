import type { CommandContext } from '../context/context.ts'
import { CliError } from '../errors/cli-error.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { listAt, textAt } from '../replies/fields.ts'
import { readIfThere } from '../machine/files.ts'
import type { Client } from '../calls/client.ts'
import { devicePlaces, type DevicePlaces } from '../machine/paths.ts'
import type { DeviceIdentity } from '../../shared/device/device-identity.ts'

/** The name by which its server knows this machine, as `svc device connect` stored it; null when it is not a device. */
export function readIdentity(places: DevicePlaces): DeviceIdentity | null {
  const text = textOf(places.identity)
  if (text === null) return null
  const value = parseJsonText(text)
  const [publicId, deviceId, displayName, server] = ['publicId', 'deviceId', 'displayName', 'server'].map((key) =>
    textAt(value, key),
  )
  if (publicId == null || deviceId == null || displayName == null || server == null) {
    throw new CliError('identity_unreadable', `The identity of this device in ${places.identity} cannot be read.`, {
      remediation: 'Remove the file and type `svc device connect`.',
    })
  }
  return { publicId, deviceId, displayName, server }
}

/** Why the server took the device no longer when its daemon ended; null: that is not why, or nobody can tell. */
export function refusalOf({ refused }: DevicePlaces): { reason: string; text: string } | null {
  const value = parseJsonText(readIfThere(refused) ?? '')
  const [reason, text] = [textAt(value, 'reason'), textAt(value, 'text')]
  return reason == null || text == null ? null : { reason, text: text.slice(0, 500) }
}

function textOf(path: string): string | null {
  try {
    return readIfThere(path)
  } catch (error) {
    throw new CliError(
      'identity_unreadable',
      `The identity of this device cannot be read: ${(error as Error).message}.`,
      { remediation: 'Make the file and its folder readable for this user.' },
    )
  }
}

/** Fails when this machine is no device. */
export async function thisDevice({ env, command }: Pick<CommandContext, 'env' | 'command'>): Promise<DeviceIdentity> {
  const identity = readIdentity(await devicePlaces(env))
  if (identity !== null) return identity
  const flag = command.flags.find((candidate) => candidate.fallback === 'this_device')
  throw new CliError('no_device', 'This machine is not a device of your workspace.', {
    remediation: `Type \`svc device connect\`${flag === undefined ? '' : `, or name a device with --${flag.name} (see \`svc device list\`)`}.`,
  })
}

/**
 * Returns the UUID of a device's connection, which the API takes. Finds a `dvc_` id or a name in the list of devices,
 * and returns a UUID as it is.
 */
export async function connectionIdOf(client: Client, reference: string): Promise<string> {
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-/i.test(reference)) return reference
  const { body } = await client.call({ method: 'GET', path: '/api/v1/devices' })
  const devices = listAt(body, 'devices')
  const matches = ['publicId', 'displayName']
    .map((key) => devices.filter((device) => textAt(device, key) === reference))
    .find((found) => found.length > 0)
  const [device, second] = matches ?? []
  const deviceId = textAt(device, 'deviceId')
  if (deviceId !== null && second === undefined) return deviceId
  throw new CliError(
    'device_unknown',
    second === undefined
      ? `None of your devices in this workspace is \`${reference}\`.`
      : `Several of your devices are called \`${reference}\`.`,
    { remediation: 'Type `svc device list` to see their ids.' },
  )
}
