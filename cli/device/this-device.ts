import type { CommandContext } from '../context.ts'
import { CliError } from '../errors/cli-error.ts'
import { listAt, parseJsonText, textAt } from '../replies/fields.ts'
import { readIfThere } from '../machine/files.ts'
import type { Client } from '../http/client.ts'
import { devicePlaces, type DevicePlaces } from '../machine/paths.ts'

/** What this machine is to its server, as `svc device connect` wrote it. */
export interface Identity {
  publicId: string
  deviceId: string
  displayName: string
  server: string
}

export function readIdentity(places: DevicePlaces): Identity | null {
  const text = textOf(places.identity)
  if (text === null) return null
  const value = parseJsonText(text)
  const [publicId, deviceId, displayName, server] = ['publicId', 'deviceId', 'displayName', 'server'].map((key) =>
    textAt(value, key),
  )
  if (publicId == null || deviceId == null || displayName == null || server == null) {
    throw new CliError('identity_unreadable', `The identity of this device in ${places.identity} cannot be read.`, {
      exit: 'refused',
      remediation: 'Remove the file and type `svc device connect`.',
    })
  }
  return { publicId, deviceId, displayName, server }
}

function textOf(path: string): string | null {
  try {
    return readIfThere(path)
  } catch (error) {
    throw new CliError(
      'identity_unreadable',
      `The identity of this device cannot be read: ${(error as Error).message}.`,
      {
        exit: 'refused',
        remediation: 'Make the file and its folder readable for this user.',
      },
    )
  }
}

/** Fails when this machine is no device. */
export async function thisDevice({ env, command }: Pick<CommandContext, 'env' | 'command'>): Promise<Identity> {
  const identity = readIdentity(await devicePlaces(env))
  if (identity !== null) return identity
  const flag = command.flags.find((candidate) => candidate.fallback === 'this_device')
  throw new CliError('no_device', 'This machine is not a device of your workspace.', {
    exit: 'refused',
    remediation: `Type \`svc device connect\`${flag === undefined ? '' : `, or name a device with --${flag.name} (see \`svc device list\`)`}.`,
  })
}

/**
 * The UUID of a device's connection, which the API takes: from its `dvc_` id or name by the list of devices. A UUID stands
 * for itself.
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
    { exit: 'refused', remediation: 'Type `svc device list` to see their ids.' },
  )
}
