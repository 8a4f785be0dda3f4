"""What a trial's runs show."""
