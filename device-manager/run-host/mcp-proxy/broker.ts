import { brokerRefusal } from '../../../shared/runs/brokered.ts'
import { beginOf } from './answer.ts'
import { ProxyError, type Credential } from './credential.ts'
import type { Upstream } from './upstream.ts'

// The proxy of a sandbox leads to the broker, which adds the credential outside and renews it there.

/** The proxy adds nothing. After a refusal that comes this far the broker has another credential. */
export const brokerCredential: Credential = { headers: () => Promise.resolve({}), renew: () => Promise.resolve(true) }

/** Tells as the proxy's own words what the broker answers in place of the server. */
export const throughBroker = (upstream: Upstream): Upstream => ({
  async send(request) {
    const answer = await upstream.send(request)
    if (answer.headers[brokerRefusal] === undefined) return answer
    const { bytes } = await beginOf(answer)
    answer.destroy()
    throw new ProxyError(bytes.toString('utf8').trim().replace(/\.$/, ''), answer.statusCode)
  },
  close: () => upstream.close(),
})
