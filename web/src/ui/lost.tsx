export function Lost() {
  return (
    <main className="grid min-h-dvh place-items-center p-6" role="status">
      <div className="max-w-sm text-center">
        <h1 className="text-lg font-semibold">The server does not answer</h1>
        <p className="mt-2 text-muted">The page goes on by itself as soon as it does. Is <code>berth serve</code> running?</p>
      </div>
    </main>
  );
}
