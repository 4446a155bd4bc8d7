import type { Flow } from '../../context/context.ts'
import { demandNoRun } from '../../sign-in/login-file.ts'

/** `auth token`: prints the token alone, as programs take it. */
export const authToken: Flow = async (context) => {
  const { env, out } = context
  demandNoRun(env)
  const { token } = (await context.connect()).caller
  if (out.isJsonWanted) await out.result({ token })
  else out.exact(token)
}
