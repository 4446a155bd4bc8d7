import type { Flow } from '../../context/context.ts'
import { pathSegment } from '../../http/path-segment.ts'
import { localText } from '../../arguments/values.ts'

// Login tokens and devices on the server (shared/api/auth-internal.ts).

const path = '/api/auth/tokens'
const devicesPath = '/api/auth/devices'

/** `auth list` */
export const authList: Flow = async (context) => {
  const { values, out } = context
  const client = await context.connect()
  const isAll = values.local['all'] === true
  const after = localText(values, 'after') ?? undefined
  const { body } = await client.call({ method: 'GET', path, query: { all: isAll || undefined, limit: 100, after } })
  await out.result(body, { look: 'auth list', list: 'data', nextFlag: '--after' })
}

/** `auth devices` */
export const authDevices: Flow = async (context) => {
  const client = await context.connect()
  const { body } = await client.call({ method: 'GET', path: devicesPath })
  await context.out.result(body, { look: 'auth devices', list: 'devices' })
}

/** `auth revoke` */
export const authRevoke: Flow = async (context) => {
  const { values, out } = context
  const client = await context.connect()
  const id = pathSegment(localText(values, 'id') ?? '')
  const of = id.startsWith('dvc_') ? devicesPath : path
  const { body } = await client.call({ method: 'DELETE', path: `${of}/${id}`, isKeyed: true })
  await out.result(body, { look: 'auth revoke' })
}
