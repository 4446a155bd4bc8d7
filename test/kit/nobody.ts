/**
 * Source text that makes a process of root's one of another user, for tests of what permissions forbid. It runs after
 * the modules are loaded: the checkout itself may lie where that user may not go.
 */
export const becomeNobody = `if (process.getuid() === 0) {
  process.setgroups([]); process.setgid(65534); process.setuid(65534)
}`
