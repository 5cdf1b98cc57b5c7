import { Link } from "@tanstack/react-router";
import { Empty } from "../ui/empty";
import { Page } from "../ui/page";

export function NotFound() {
  return (
    <Page title="No such page">
      <Empty title="Nothing is at this address">It may have moved, or been deleted. <Link className="link" to="/">Go to the start</Link>.</Empty>
    </Page>
  );
}
